// Release 0.8.18 imports a module of `vscode-jsonrpc` by a name that Node does not find; nothing else of it is changed.
import { registerHooks } from "node:module";

registerHooks({
  resolve: (name, context, next) => next(name === "vscode-jsonrpc/node" ? "vscode-jsonrpc/node.js" : name, context),
});
