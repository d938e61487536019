pub fn probe_if_asked(){}
