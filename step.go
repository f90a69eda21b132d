package tenon

import "strings"

// Step is the name of a step, parsed. The name of a step is unique in its run. In the run of an agent:
//
//	""        the run itself
//	"3"       turn 3: a model call
//	"c3"      the compaction before turn 3
//	"3.1"     call 1 of turn 3; calls count from 0
//	"3.1/q"   question q, which the server asks during that call
//
// In the run of a workflow, "load" is a step of the file, "load.4" its repetition for item 4, and "load.4/q" a
// question during that repetition. A run that a step starts has the id RUN/STEP; see [ChildRun].
type Step struct {
	Unit     string // turn, compaction or workflow step; "" is the run itself
	Call     string // index of a tool call or of a repetition; "" is the unit itself
	Question string // "" is not a question
}

// ParseStep parses the name of a step. Every text is a valid name.
func ParseStep(name string) Step {
	name, question, _ := strings.Cut(name, "/")
	unit, call, _ := strings.Cut(name, ".")
	return Step{Unit: unit, Call: call, Question: question}
}

// String returns the name of the step.
func (s Step) String() string {
	name := s.Unit
	if s.Call != "" {
		name += "." + s.Call
	}
	if s.Question != "" {
		name += "/" + s.Question
	}
	return name
}

// IsCall reports whether the step is a tool call of a turn, or a repetition of a workflow step. It returns false for
// questions.
func (s Step) IsCall() bool { return s.Call != "" && s.Question == "" }

// IsQuestion reports whether the step is a question during another step.
func (s Step) IsQuestion() bool { return s.Question != "" }

// IsCompaction reports whether the step is a compaction. It applies to runs of agents.
func (s Step) IsCompaction() bool {
	return s.Call == "" && s.Question == "" && strings.HasPrefix(s.Unit, "c")
}

// Asker returns the step during which a question was asked. For other steps it returns s.
func (s Step) Asker() Step { return Step{Unit: s.Unit, Call: s.Call} }

// ChildRun returns the id of the run that a step of a run starts.
func ChildRun(run, step string) string { return run + "/" + step }

// ParentRun splits the id of a run into the id of the run that started it and the step that did so. Both are empty if
// the run was not started by another run.
func ParentRun(id string) (run, step string) {
	i := strings.LastIndexByte(id, '/')
	if i < 0 {
		return "", ""
	}
	return id[:i], id[i+1:]
}

// RootRun returns the id of the run that a caller started, without the ids of child runs.
func RootRun(id string) string {
	root, _, _ := strings.Cut(id, "/")
	return root
}
