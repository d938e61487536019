"""A small application of NiceGUI with a login, live data, an upload and a long table, on a port of loopback."""
import sys

from nicegui import app, ui

NAMES = [f"Order {number}" for number in range(500)]
heard = []


@ui.page("/login")
def login():
    def enter():
        if name.value == "ada" and password.value == "secret":
            app.storage.user["name"] = name.value
            ui.navigate.to("/")
        else:
            ui.notify("Wrong name or password")
    name = ui.input("User")
    password = ui.input("Password", password=True)
    ui.button("Log in", on_click=enter)


@ui.page("/enter")
def enter_at_once():
    app.storage.user["name"] = "ada"
    ui.navigate.to("/")


@ui.page("/")
def home():
    if "name" not in app.storage.user:
        return ui.navigate.to("/login")
    ui.label(f"Hello {app.storage.user['name']}")
    with ui.tabs() as tabs:
        first, second, third = ui.tab("Orders"), ui.tab("Files"), ui.tab("Live")
    with ui.tab_panels(tabs, value=first).classes("w-full"):
        with ui.tab_panel(first):
            table = ui.table(
                columns=[{"name": "name", "label": "Name", "field": "name", "sortable": True, "align": "left"}],
                rows=[{"id": at, "name": name} for at, name in enumerate(NAMES)], row_key="id", selection="multiple",
                on_select=lambda event: heard.append(f"chosen {len(event.selection)}"),
            ).classes("h-64 w-96").props("virtual-scroll")
            ui.input("Filter").bind_value(table, "filter")
            with ui.dialog() as dialog, ui.card():
                ui.label("Delete the first?")
                ui.button("Yes", on_click=lambda: (heard.append("deleted"), table.remove_rows(table.rows[:1]), dialog.close()))
                ui.button("No", on_click=dialog.close)
            ui.button("Delete", on_click=dialog.open)
        with ui.tab_panel(second):
            ui.upload(label="Drop it", auto_upload=True, on_upload=lambda event: heard.append(f"file {event.file.name}"))
            ui.button("Get report", on_click=lambda: ui.download(b"a report", "report.txt"))
        with ui.tab_panel(third):
            clock = ui.label("0 ticks")
            ui.timer(0.5, lambda: clock.set_text(f"{int(clock.text.split()[0]) + 1} ticks"))
            level = ui.slider(min=0, max=10, value=3).props('aria-label="Level"')
            ui.label().bind_text_from(level, "value", lambda value: f"Level is {value}")
            ui.button("Nothing")
            ui.switch("Loud", on_change=lambda event: heard.append(f"loud {event.value}"))
            ui.select(["Oslo", "Bari", "Lyon"], label="Town", on_change=lambda event: heard.append(f"town {event.value}"))


@app.get("/heard")
def told():
    return heard


ui.run(host="127.0.0.1", port=int(sys.argv[1]), reload=False, show=False, storage_secret="loopback")
