/** Waits until Plotly is there: Streamlit loads it with the first chart of its own on a page, and live.py puts a hidden one there. */
export async function untilPlotly() {
  while (!window.Plotly) await new Promise((resolve) => setTimeout(resolve, 20));
}
