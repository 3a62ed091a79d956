-- Neovim 0.11 or later: copy this folder's parts into ~/.config/nvim, then vim.lsp.enable("xscl").
return {
  cmd = { "xscl", "lsp" },
  filetypes = { "xscl" },
  root_markers = { "xscl.toml", ".git" },
}
