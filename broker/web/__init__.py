"""The broker's page for people: what runs, what was found, what fails.  It changes nothing."""
