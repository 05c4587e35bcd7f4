"""The page's look: one accent on neutral greys, contrasts that pass WCAG AA in both modes, no font from outside."""

import gradio as gr

from vitdemo import front


def theme() -> gr.themes.Base:
    """Monochrome passes contrast where the other built-in themes do not; the bundled semi-bold files lack letters, hence (400, 700)."""
    fonts = [gr.themes.LocalFont("IBM Plex Sans", weights=(400, 700)), "ui-sans-serif", "system-ui", "sans-serif"]
    return gr.themes.Monochrome(
        text_size=gr.themes.sizes.text_lg, radius_size=gr.themes.sizes.radius_md, primary_hue=gr.themes.colors.blue, font=fonts,
        font_mono=["ui-monospace", "Consolas", "monospace"],
    ).set(
        body_text_color_subdued="*neutral_600", body_text_color_subdued_dark="*neutral_300", block_label_text_weight="400",
        button_primary_background_fill="*primary_700", button_primary_background_fill_hover="*primary_800", button_primary_text_color="white",
        button_primary_background_fill_dark="*primary_300", button_primary_background_fill_hover_dark="*primary_200",
        button_primary_text_color_dark="*neutral_950", slider_color="*primary_700", slider_color_dark="*primary_300",
        block_title_text_weight="400", button_large_text_weight="700",
    )


CSS = f":root {{ {front.LIGHT} }}\n.dark {{ {front.DARK} }}" + """
button[role="tab"][aria-selected="true"] { color: var(--vd-accent) !important; }
.gradio-container :focus-visible, .vd-skip:focus { outline: 3px solid var(--vd-accent) !important; outline-offset: 2px; }
.gradio-container .vl-race-title:focus-visible { outline: none !important; }
.vd-skip { position: fixed; z-index: 1000; top: 8px; left: 8px; clip-path: inset(50%); font-family: var(--font); padding: 14px 20px; border-radius: 8px; background: var(--background-fill-primary); color: var(--vd-accent) !important; font-weight: 700; }
.vd-skip:focus { clip-path: none; }
#vd-viewer .pending, #vd-model .pending, #vd-lab .pending { opacity: 0.9 !important; }
.prose h2 { font-size: 1.3rem; margin-top: 1.4rem; }
#vd-picture button.icon-button, #vd-picture button.icon { min-width: 32px; min-height: 32px; display: inline-flex; align-items: center; justify-content: center; }
#vd-picture button.icon { color: var(--body-text-color); }
#vd-picture button.icon.selected { color: var(--vd-accent); }
.gradio-container { max-width: 1480px !important; width: 100%; margin: 0 auto; overflow: clip !important; }
html:has(dialog.vd-show[open]) { overflow: hidden; }
.vd-head h1 { margin: 0; font-size: 1.6rem; font-weight: 700; }
.vd-head p { margin: 0.1rem 0 0; color: var(--body-text-color-subdued); }
.vd-small p, .vd-small { font-size: 0.92rem; color: var(--body-text-color-subdued); }
#vd-examples .grid-wrap { height: auto !important; max-height: none !important; min-height: 0 !important; overflow: visible !important; padding: 0 !important; }
#vd-examples .grid-container { grid-template-columns: repeat(4, minmax(0, 1fr)) !important; gap: 6px !important; padding: 40px 8px 8px !important; }
#vd-examples .thumbnail-item { aspect-ratio: 1; width: 100%; }
#vd-examples .thumbnail-item.selected { --ring-color: transparent; border-color: var(--border-color-primary); }
#vd-examples .thumbnail-item[aria-current] { outline: 2px solid var(--vd-accent); border-color: var(--vd-accent); }
#vd-examples .thumbnail-item:focus-visible { outline: 3px solid var(--color-accent); outline-offset: 1px; }
#vd-examples .caption-label { inset: auto 0 0 0; max-width: none; padding: 1px 2px; border: 0; border-radius: 0; font-size: 12px; text-align: center; }
@media (max-width: 760px), (pointer: coarse) {
  button[role="tab"], #vd-picture button.icon-button, #vd-picture button.icon, .gradio-container .toast-close { min-height: 44px; min-width: 44px; }
}
@media (max-width: 900px) {
  .vd-explore { display: grid !important; grid-template-columns: minmax(0, 1fr); }
  .vd-explore > .vd-first { order: -1; }
}
@media (max-width: 600px) {
  .gradio-container .main.fillable { padding: 12px 14px !important; }
  #vd-viewer .html-container, #vd-lab .html-container, #vd-model .html-container { padding: 0 !important; }
}
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after { animation-duration: 0.01ms !important; animation-iteration-count: 1 !important; transition: none !important; scroll-behavior: auto !important; }
}
@media (forced-colors: active) { button[role="tab"][aria-selected="true"] { text-decoration: underline; text-decoration-thickness: 3px; text-underline-offset: 6px; } }
@media (prefers-contrast: more) { :root, .dark { --body-text-color-subdued: var(--body-text-color); --border-color-primary: var(--vd-edge); } }
"""
