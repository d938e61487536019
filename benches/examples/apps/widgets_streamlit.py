"""Widgets of Streamlit, most kinds once."""
import pandas as pd
import streamlit as st


@st.dialog("Really?")
def ask():
    st.write("Are you sure?")
    st.button("Yes, sure")


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
st.file_uploader("Upload a file")
st.color_picker("Tint", "#00f900")
st.button("Greet")
st.download_button("Download CSV", "a,b\n1,2\n", "data.csv")
st.segmented_control("Part", ["A", "B", "C"])
st.pills("Tags", ["x", "y", "z"], selection_mode="multi")
st.feedback("stars")
first, second = st.tabs(["First", "Second"])
first.write("in the first tab")
second.button("Inner")
with st.expander("More"):
    st.button("Hidden button")
st.data_editor(pd.DataFrame({"item": ["a", "b"], "count": [1, 2], "ok": [True, False]}))
with st.form("f"):
    st.text_input("In form")
    st.form_submit_button("Send form")
if st.button("Open dialog", key="ask"):
    ask()
st.chat_input("Say something")
