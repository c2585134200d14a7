"""What records say: tables and their statistics, pages of them in every format, and pictures. No torch here."""
