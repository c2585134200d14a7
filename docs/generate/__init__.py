"""The pages of the site that are made from the code and the published records when it is built."""
