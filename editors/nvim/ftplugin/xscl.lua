vim.bo.commentstring = "-- %s"
