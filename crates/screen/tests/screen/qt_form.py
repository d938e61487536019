"""A form of Qt 6 with what programs of Qt have: fields, lists, tables, a tree, menus, a dialog."""

import sys

from PyQt6.QtWidgets import (
    QApplication, QCheckBox, QComboBox, QFormLayout, QLabel, QLineEdit, QListWidget, QMainWindow,
    QMessageBox, QPlainTextEdit, QPushButton, QSpinBox, QTableWidget, QTableWidgetItem, QTabWidget,
    QToolButton, QTreeWidget, QTreeWidgetItem, QWidget,
)

app = QApplication(sys.argv)
window = QMainWindow()
window.setWindowTitle("Order")
page = QWidget()
form = QFormLayout(page)
name, secret, notes = QLineEdit(), QLineEdit(), QPlainTextEdit()
secret.setEchoMode(QLineEdit.EchoMode.Password)
colour, count, agree = QComboBox(), QSpinBox(), QCheckBox("I agree")
colour.addItems(["red", "green", "blue"])
for label, field in [
    ("Name", name), ("Secret", secret), ("Colour", colour), ("Count", count), ("Notes", notes),
]:
    form.addRow(label, field)
form.addRow(agree)
table = QTableWidget(3, 2)
for row in range(3):
    for column in range(2):
        table.setItem(row, column, QTableWidgetItem(f"row {row} column {column}"))
form.addRow(table)
said = QLabel("nothing sent")
form.addRow(said)
send, clear = QPushButton("Send"), QToolButton()
clear.setToolTip("Clear all")
form.addRow(send)
form.addRow(clear)


def sent():
    ticked = "agreed" if agree.isChecked() else "not agreed"
    said.setText(f"{name.text()}, {count.value()} {colour.currentText()}, {ticked}")


def asked():
    if QMessageBox.question(window, "Sure", "Clear all?") == QMessageBox.StandardButton.Yes:
        said.setText("cleared")


send.clicked.connect(sent)
clear.clicked.connect(asked)
menu = window.menuBar().addMenu("File")
menu.addAction("Clear", asked)
tree = QTreeWidget()
for number in range(2):
    node = QTreeWidgetItem(tree, [f"node {number}"])
    QTreeWidgetItem(node, [f"leaf {number}"])
rows = QListWidget()
rows.addItems([f"item {number}" for number in range(1000)])
tabs = QTabWidget()
for what, title in [(page, "Form"), (tree, "Tree"), (rows, "List")]:
    tabs.addTab(what, title)
window.setCentralWidget(tabs)
window.resize(700, 700)
window.show()
sys.exit(app.exec())
