"""One run: training, tests and measurements, and the record that they leave."""
