pub struct Surroundings; pub enum PlanError{} pub fn plan(){}
