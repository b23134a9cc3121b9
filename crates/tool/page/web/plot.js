// The parts of Observable Plot that the page uses. They become the global `Plot`.
export {plot} from "@observablehq/plot/src/plot.js";
export {areaY} from "@observablehq/plot/src/marks/area.js";
export {axisX, axisY, gridX, gridY} from "@observablehq/plot/src/marks/axis.js";
export {dot} from "@observablehq/plot/src/marks/dot.js";
export {line} from "@observablehq/plot/src/marks/line.js";
export {link} from "@observablehq/plot/src/marks/link.js";
export {rect} from "@observablehq/plot/src/marks/rect.js";
export {ruleX, ruleY} from "@observablehq/plot/src/marks/rule.js";
export {text} from "@observablehq/plot/src/marks/text.js";
