"""Components of Gradio in tabs, on a port of loopback."""
import sys
import time

import gradio as gr


def work(progress=gr.Progress()):
    for step in range(4):
        progress(step / 4, desc=f"Step {step}")
        time.sleep(0.5)
    return "Worked"


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
        table = gr.Dataframe([[1, "a"], [2, "b"]], headers=["n", "w"], interactive=True, label="Table", datatype=["number", "str"], type="array")
        counted = gr.Textbox(label="Counted")
        gr.Button("Count").click(lambda rows: str(sum(float(row[0]) for row in rows)), table, counted)
    with gr.Tab("Files"):
        given = gr.File(label="Upload")
        size = gr.Textbox(label="Bytes")
        given.upload(lambda file: str(len(open(file, "rb").read())), given, size)
        gr.DownloadButton("Get report", value=__file__)
        gr.Image(label="Picture")
    with gr.Tab("Work"):
        worked = gr.Textbox(label="Result")
        gr.Button("Start").click(work, None, worked)
    with gr.Tab("Chat"):
        gr.ChatInterface(lambda message, history: "You said " + message)
    with gr.Accordion("More", open=False):
        gr.Textbox(label="Hidden field")
demo.launch(server_port=int(sys.argv[1]))
