#!/bin/bash
cd /app
python3 -c "import collections, json; json.dump(collections.Counter(line.split()[3] for line in open('access.log')), open('report.json', 'w'))"
