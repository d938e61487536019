"""Widgets of Streamlit, most kinds once, and what came of them."""
import time

import pandas as pd
import streamlit as st


@st.dialog("Really?")
def ask():
    st.write("Are you sure?")
    if st.button("Yes, sure"):
        st.session_state.sure = True
        st.rerun()


st.title("Widgets")
st.sidebar.selectbox("Region", ["North", "South", "East"])
st.checkbox("I agree")
st.toggle("Dark mode")
st.radio("Size", ["Small", "Medium", "Large"])
st.slider("Age", 0, 130, 25)
st.slider("Range", 0, 100, (20, 80))
st.select_slider("Level", options=["low", "middle", "high"])
name = st.text_input("Name")
st.text_input("Password", type="password")
st.number_input("Amount", 0, 10, 3)
st.date_input("Day")
st.time_input("Hour")
st.text_area("Notes")
st.multiselect("Fruits", ["Apple", "Pear", "Plum"], ["Apple"])
st.selectbox("Town", ["Oslo", "Bari", "Lyon"])
given = st.file_uploader("Upload a file")
if given:
    st.write(f"Got {len(given.getvalue())} bytes")
st.color_picker("Tint", "#00f900")
if st.button("Greet"):
    st.write(f"Hello {name}")
st.download_button("Download CSV", "a,b\n1,2\n", "data.csv")
st.segmented_control("Part", ["A", "B", "C"])
st.pills("Tags", ["x", "y", "z"], selection_mode="multi")
st.feedback("stars")
first, second = st.tabs(["First", "Second"])
first.write("in the first tab")
second.button("Inner")
with st.expander("More"):
    st.button("Hidden button")
table = st.data_editor(pd.DataFrame({"item": ["a", "b"], "count": [1, 2], "ok": [True, False]}))
with st.form("f"):
    inside = st.text_input("In form")
    if st.form_submit_button("Send form"):
        st.write(f"Sent {inside}")
st.write(f"Counted {table['count'].sum()}")
if st.button("Open dialog", key="ask"):
    ask()
if st.session_state.get("sure"):
    st.write("Surely")
if st.button("Work"):
    with st.status("Working"):
        for step in range(4):
            st.write(f"Step {step}")
            time.sleep(0.5)
    st.write("Worked")
if said := st.chat_input("Say something"):
    st.chat_message("user").write(f"You said {said}")
