import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { startRouting } from "./lib/route";
import { startTheme } from "./lib/theme";
import { goBack } from "./ui/signin";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/controls.css";
import "./styles/lists.css";
import "./styles/pages.css";
import "./styles/panels.css";
import "./styles/palette.css";
import "./styles/wall.css";

goBack();
startTheme();
startRouting();
const root = document.getElementById("root");
if (!root) throw new Error("index.html lacks the element #root");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
