#!/bin/bash
wc -w < /workspace/poem.txt > /workspace/count.txt
