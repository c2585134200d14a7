"""Results: tables of records and their statistics, pages in every format, and pictures. No torch here."""
