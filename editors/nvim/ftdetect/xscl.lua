vim.filetype.add({ extension = { xscl = "xscl" } })
