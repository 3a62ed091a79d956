// Starts `xscl lsp` for files of XSCL, and ends it with the editor.
const { window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async () => {
  const settings = workspace.getConfiguration("xscl");
  const server = { command: settings.get("command"), args: [...settings.get("options"), "lsp"] };
  client = new LanguageClient("xscl", "XSCL", server, { documentSelector: [{ language: "xscl" }] });
  try {
    await client.start();
  } catch {
    // The client has said why.
    window.showErrorMessage(
      "XSCL: pip install 'xscl-broker[lsp]' brings the command xscl; the setting xscl.command says where it is.",
    );
  }
};

exports.deactivate = () => client?.stop();
