"""Histories: documents arrive while queries and subscriptions come and go, and processes die."""
