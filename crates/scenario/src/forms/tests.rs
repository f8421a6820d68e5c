use super::*;
use crate::model::{Arrival, CoreId, Range, Step};
use crate::random;
use crate::scenario::Scenario;
use crate::sim::simulate;

#[test]
fn stretches_add_up_to_the_busy_time() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..100 {
        let model = random::rich(&mut random).checked().expect("it is sound");
        let scenario = random::scenario(&mut random, &model, 0);
        let run = simulate(&model, &scenario);
        let mut busy = vec![0; model.cores.len()];
        for span in spans::spans(&run) {
            busy[span.core.0] += span.to_ns - span.from_ns;
        }
        assert_eq!(busy, run.busy_ns);
    }
}

#[test]
fn a_trace_in_btf_reads_as_it_happened() {
    let model = Model::from_toml(
        r#"
format = 1
horizon = "20us"
[[resource]]
name = "bus"
protocol = "inheritance"
[[task]]
name = "low"
arrival = { period = "20us" }
steps = [{ lock = "bus" }, { run = "3us" }, { unlock = "bus" }]
priority = 1
[[task]]
name = "high, urgent"
arrival = { period = "20us", offset = "1us" }
steps = [{ lock = "bus" }, { run = "1us" }, { unlock = "bus" }]
priority = 2
"#,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let run = simulate(&model, &Scenario::fullest(&model, 0));
    let expected = "\
#version 2.1.5
#creator hearth scenario
#timeScale ns
0,arrival_low,0,T,low,0,activate
0,core0,0,T,low,0,start
0,low,0,SEM,bus,0,lock
1000,arrival_high_ urgent,0,T,high_ urgent,0,activate
1000,core0,0,T,low,0,preempt
1000,core0,0,T,high_ urgent,0,start
1000,core0,0,T,high_ urgent,0,wait
1000,core0,0,T,low,0,resume
3000,low,0,SEM,bus,0,unlock
3000,high_ urgent,0,T,high_ urgent,0,release
3000,high_ urgent,0,SEM,bus,0,lock
3000,core0,0,T,low,0,preempt
3000,core0,0,T,high_ urgent,0,resume
4000,high_ urgent,0,SEM,bus,0,unlock
4000,core0,0,T,high_ urgent,0,terminate
4000,core0,0,T,low,0,resume
4000,core0,0,T,low,0,terminate
";
    assert_eq!(trace::btf(&model, &run), expected);
}

const WORKLOAD: &str = r#"
{
  "global": { "duration": 2 },
  "resources": { "bus": { "type": "mutex" } },
  "tasks": {
    "control": {
      "policy": "SCHED_FIFO", "priority": 10, "cpus": [1], "loop": -1, "delay": 500,
      "lock": "bus", "run": 1000, "unlock": "bus", "run1": 250,
      "timer": { "ref": "tick", "period": 5000 }
    },
    "log": {
      "instance": 2, "cpus": [0],
      "phases": { "work": { "loop": 2, "run": 100, "sleep": 400 }, "sync": { "barrier": "all" } }
    }
  }
}
"#;

#[test]
fn hand_written_workloads_are_read() {
    let read = rt_app::read(WORKLOAD).unwrap_or_else(|error| panic!("{error}"));
    let model = read.model;
    assert_eq!(model.horizon_ns, 2_000_000_000);
    assert_eq!(model.cores.len(), 2);
    let control = &model.tasks[0];
    assert_eq!(control.priority, 10);
    assert_eq!(control.cores, [CoreId(1)]);
    assert_eq!(
        control.arrival,
        Arrival::Periodic {
            period_ns: 5_000_000,
            offset: Range::exactly(500_000),
            jitter_ns: 0
        }
    );
    assert_eq!(control.steps.len(), 4);
    assert_eq!(control.steps[3], Step::Run(Range::exactly(250_000)));
    assert_eq!(model.tasks[1].name, "log-0");
    assert_eq!(model.tasks[2].duration(), Range::exactly(200_000));
    assert!(
        read.notes
            .contains(&"`barrier` of `log-0` is not read.".to_owned()),
        "{:?}",
        read.notes
    );
    assert!(
        read.notes
            .iter()
            .any(|note| note.starts_with("`log-1` arrives every 1000 us"))
    );
}

#[test]
fn mistakes_in_workloads_have_a_place() {
    let cases = [
        (
            "\"run\": 1000",
            "\"run\": \"long\"",
            "task `control`, field `run`: it is not a number of microseconds up to an hour: write one",
        ),
        (
            "\"cpus\": [1]",
            "\"cpus\": 1",
            "task `control`, field `cpus`: it is not a list: write one, as `[0]`",
        ),
        (
            "\"period\": 5000",
            "\"ref2\": 1",
            "task `control`, field `timer`: it has no `period` in microseconds: add one",
        ),
        (
            "\"sleep\": 400",
            "\"run\": 1",
            "task `log-0`: it has neither `timer` nor `sleep`, so its arrivals are unknown: add a timer",
        ),
        (
            "\"unlock\": \"bus\", ",
            "",
            "task `control`, field `steps`: `bus` is still locked at the end: add `{ unlock = \"bus\" }`",
        ),
        (
            "\"tasks\"",
            "\"task\"",
            "field `tasks`: it is missing: give a workload with tasks",
        ),
    ];
    for (right, wrong, message) in cases {
        let text = WORKLOAD.replacen(right, wrong, 1);
        assert_ne!(text, WORKLOAD);
        let error = rt_app::read(&text).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(message));
    }
}

const CAR: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<am:Amalthea xmlns:am="http://app4mc.eclipse.org/amalthea/3.3.0" xmlns:xmi="http://www.omg.org/XMI" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmi:version="2.0">
  <swModel>
    <tasks name="Task_10ms" stimuli="Timer_10ms?type=PeriodicStimulus" multipleTaskActivationLimit="1">
      <activityGraph>
        <items xsi:type="am:RunnableCall" runnable="Read?type=Runnable"/>
        <items xsi:type="am:RunnableCall" runnable="Control%20all?type=Runnable"/>
        <items xsi:type="am:InterProcessTrigger" stimulus="Then?type=InterProcessStimulus"/>
      </activityGraph>
    </tasks>
    <tasks name="Task_After" stimuli="Then?type=InterProcessStimulus">
      <activityGraph><items xsi:type="am:Ticks"><default xsi:type="am:DiscreteValueConstant" value="40000"/></items></activityGraph>
    </tasks>
    <tasks name="Task_Crank" stimuli="Crank?type=VariableRateStimulus">
      <activityGraph><items xsi:type="am:Ticks"><default xsi:type="am:DiscreteValueConstant" value="40000"/></items></activityGraph>
    </tasks>
    <runnables name="Read">
      <activityGraph><items xsi:type="am:Ticks"><default xsi:type="am:DiscreteValueStatistics" lowerBound="100000" upperBound="200000" average="150000.0"/></items>
        <items xsi:type="am:LabelAccess" data="speed?type=Label" access="read"/></activityGraph>
    </runnables>
    <runnables name="Control all">
      <activityGraph><items xsi:type="am:Ticks"><default xsi:type="am:DiscreteValueConstant" value="400000"/></items></activityGraph>
    </runnables>
    <labels name="speed"><size value="8" unit="bit"/></labels>
  </swModel>
  <hwModel>
    <structures name="ecu"><modules xsi:type="am:ProcessingUnit" name="Core_0" frequencyDomain="clock?type=FrequencyDomain"/><modules xsi:type="am:ProcessingUnit" name="Core_1" frequencyDomain="clock?type=FrequencyDomain"/></structures>
    <domains xsi:type="am:FrequencyDomain" name="clock"><defaultValue value="200.0" unit="MHz"/></domains>
  </hwModel>
  <stimuliModel>
    <stimuli xsi:type="am:PeriodicStimulus" name="Timer_10ms"><offset value="2" unit="ms"/><recurrence value="10" unit="ms"/></stimuli>
    <stimuli xsi:type="am:InterProcessStimulus" name="Then"/>
    <stimuli xsi:type="am:VariableRateStimulus" name="Crank"/>
  </stimuliModel>
  <constraintsModel>
    <requirements xsi:type="am:ProcessRequirement" name="r" process="Task_10ms?type=Task">
      <limit xsi:type="am:TimeRequirementLimit" limitType="UpperLimit" metric="ResponseTime"><limitValue value="8" unit="ms"/></limit>
    </requirements>
  </constraintsModel>
  <mappingModel>
    <taskAllocation task="Task_10ms?type=Task" scheduler="S?type=TaskScheduler"><schedulingParameters key="priority"><value xsi:type="am:IntegerObject" value="7"/></schedulingParameters></taskAllocation>
    <taskAllocation task="Task_After?type=Task" affinity="Core_0?type=ProcessingUnit"/>
    <schedulerAllocation scheduler="S?type=TaskScheduler" responsibility="Core_1?type=ProcessingUnit"/>
  </mappingModel>
</am:Amalthea>
"#;

#[test]
fn a_car_is_read() {
    let read = amalthea::read(CAR).unwrap_or_else(|error| panic!("{error}"));
    let model = read.model;
    assert_eq!(model.cores, ["Core_0", "Core_1"]);
    let [task, after] = &model.tasks[..] else {
        panic!("two tasks are read: {:?}", model.tasks)
    };
    // 100,000 to 200,000 and 400,000 ticks of 5 ns.
    assert_eq!(
        task.duration(),
        Range {
            from_ns: 2_500_000,
            to_ns: 3_000_000
        }
    );
    assert_eq!((task.priority, &task.cores[..]), (7, &[CoreId(1)][..]));
    assert_eq!(task.deadline_ns, Some(8_000_000));
    assert_eq!(
        task.arrival,
        Arrival::Periodic {
            period_ns: 10_000_000,
            offset: Range::exactly(2_000_000),
            jitter_ns: 0
        }
    );
    assert_eq!(
        after.arrival,
        Arrival::After {
            task: crate::model::TaskId(0),
            delay: Range::default()
        }
    );
    assert_eq!(after.cores, [CoreId(0)]);
    let notes = read.notes.join("\n");
    assert!(
        notes.contains("The stimulus of `Task_Crank` is a VariableRateStimulus"),
        "{notes}"
    );
    assert!(notes.contains("`Task_Crank` is left out"), "{notes}");
    assert!(
        notes.contains("labels (1)") && notes.contains("size (1)"),
        "{notes}"
    );
}

#[test]
fn mistakes_in_cars_have_a_line() {
    let cases = [
        (
            "runnable=\"Read?",
            "runnable=\"Reed?",
            "line 6, element `items`: there is no runnable `Reed`: name one of the model's",
        ),
        (
            "value=\"10\" unit=\"ms\"",
            "value=\"x\" unit=\"ms\"",
            "line 31, element `recurrence`: it is not a time of at most an hour: give `value` and `unit`",
        ),
        (
            "affinity=\"Core_0",
            "affinity=\"Core_9",
            "line 42, element `taskAllocation`: there is no processing unit `Core_9`: name one of the model's",
        ),
    ];
    for (right, wrong, message) in cases {
        let text = CAR.replacen(right, wrong, 1);
        assert_ne!(text, CAR);
        let error = amalthea::read(&text).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(message));
    }
    let circle = CAR.replacen(
        "xsi:type=\"am:LabelAccess\" data",
        "xsi:type=\"am:RunnableCall\" runnable=\"Read?type=Runnable\" data",
        1,
    );
    let error = amalthea::read(&circle)
        .expect_err("it calls itself")
        .to_string();
    assert!(error.contains("in a circle"), "{error}");
}

/// The readers answer in words, whatever is done to the files.
#[test]
fn broken_files_are_refused_in_words() {
    let mut random = fastrand::Rng::with_seed(8);
    for _ in 0..2_000 {
        for (text, is_car) in [(WORKLOAD, false), (CAR, true)] {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..random.usize(1..5) {
                let at = random.usize(0..bytes.len());
                match random.bool() {
                    true => bytes[at] = b"0123456789\"{}[]<>/-% "[random.usize(0..20)],
                    false => drop(bytes.remove(at)),
                }
            }
            let Ok(text) = String::from_utf8(bytes) else {
                continue;
            };
            match is_car {
                true => drop(amalthea::read(&text)),
                false => drop(rt_app::read(&text)),
            }
        }
    }
}
