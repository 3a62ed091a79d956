"""What a query becomes, for people and programs: `survey` finds it out, the rest prints it."""
