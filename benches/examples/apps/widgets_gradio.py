"""Components of Gradio in tabs, on a port of loopback."""
import sys

import gradio as gr

with gr.Blocks() as demo:
    with gr.Tab("Form"):
        name = gr.Textbox(label="Name")
        gr.Textbox(label="Password", type="password")
        gr.Radio(["Small", "Medium", "Large"], label="Size")
        gr.Checkbox(label="I agree")
        gr.CheckboxGroup(["Apple", "Pear"], label="Fruits")
        gr.Slider(0, 100, value=30, label="Level")
        gr.Dropdown(["Oslo", "Bari", "Lyon"], label="Town", interactive=True)
        gr.Dropdown(["a", "b", "c"], multiselect=True, label="Many")
        gr.DateTime(label="Day")
        answer = gr.Textbox(label="Answer")
        gr.Button("Greet").click(lambda who: f"Hello {who}", name, answer)
    with gr.Tab("Table"):
        gr.Dataframe([[1, "a"], [2, "b"]], headers=["n", "w"], interactive=True, label="Table")
    with gr.Tab("Files"):
        gr.File(label="Upload")
        gr.Image(label="Picture")
    with gr.Tab("Chat"):
        gr.ChatInterface(lambda message, history: "You said " + message)
    with gr.Accordion("More", open=False):
        gr.Textbox(label="Hidden field")
demo.launch(server_port=int(sys.argv[1]))
