#!/bin/bash
cd /app/site
sed -i 's/colour/color/' $(git ls-files)
git -c user.name=a -c user.email=a@b commit -q -a -m 'Use one spelling'
