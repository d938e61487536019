import { Excalidraw } from "@excalidraw/excalidraw";
import "@excalidraw/excalidraw/index.css";
import { createRoot } from "react-dom/client";

window.EXCALIDRAW_ASSET_PATH = "/npm/@excalidraw/excalidraw/dist/prod/";
createRoot(document.getElementById("root")).render(<Excalidraw />);
