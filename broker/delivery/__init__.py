"""Hand matches over: webhook, e-mail, and what subscribers fetch themselves."""
