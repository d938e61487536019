#!/bin/bash
test "$(tr -d ' \n' < /workspace/count.txt)" = 14 || { echo "count.txt does not hold 14"; exit 1; }
