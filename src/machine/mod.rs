//! stub
pub mod affinity { 
 pub struct Assignment { pub actors: Vec<Vec<usize>>, pub learners: Vec<Vec<usize>>, pub evaluator: Option<Vec<usize>> }
 pub fn plan(cores: &[usize], actors: usize, learners: usize, evaluator: bool) -> Assignment { Assignment{ actors: (0..actors).map(|i| vec![cores[(1+i)%cores.len()]]).collect(), learners: (0..learners).map(|i| vec![cores[i%cores.len()]]).collect(), evaluator: evaluator.then(|| vec![cores[1%cores.len()]]) } }
 pub fn bind_current_process(cores: &[usize]) -> Result<(), nix::Error> { let mut s = nix::sched::CpuSet::new(); for &c in cores { s.set(c)?; } nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &s) }
}
pub mod memory { pub struct Budget { pub available_bytes: u64, pub limit: String } }
pub struct Machine { pub cores: Vec<usize> }
impl Machine { pub fn detect() -> Self { Self{cores: vec![0,1]} } pub fn memory_budget(&self) -> memory::Budget { memory::Budget{available_bytes: 8<<30, limit: "x".into()} } }
