pub struct Finding; pub struct Proof; pub struct ProofError; pub struct ProbeCommand; pub fn prove(){}
