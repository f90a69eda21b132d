package workflow

import (
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon/catalog"
)

// Kind is the value of the key kind, and Name that of a file in a folder or a pack.
const (
	Kind     = "workflow"
	FileName = "workflow.yaml"
)

// File is a workflow file.
type File struct {
	// Always `workflow`.
	Kind string `yaml:"kind" enum:"workflow"`
	// Version of the format: 1.
	Version int `yaml:"version"`
	// Name of the tool; letters, digits, `_`, `-` and `.`.
	Name string `yaml:"name"`
	// What the tool does; text for models and people.
	Description string `yaml:"description"`
	// Parameters of the tool: name -> JSON Schema of the value. Each needs a `description`, and is required unless it has a `default`.
	Parameters map[string]json.RawMessage `yaml:"parameters" default:"{}"`
	// Tables that the tool takes.
	Inputs []Input `yaml:"inputs" default:"[]"`
	// What is done. The order in the file does not matter: a step begins as soon as all that it refers to is there.
	Steps []Step `yaml:"steps"`
	// Tables that the tool gives.
	Outputs []Output `yaml:"outputs" default:"[]"`
	// The text that the caller gets.
	Message Message `yaml:"message"`
	// Folder beside the file that goes with the workflow. For every call it is copied; the variable `data` is the path of the copy, for arguments of tools.
	Data string `yaml:"data"`
	// Time for a whole run; waiting for people counts.
	Timeout time.Duration `yaml:"timeout" default:"none"`
	// Steps, and calls of one foreach, that are under way at a time.
	Parallel int `yaml:"parallel" min:"1" max:"64" default:"8"`
}

// Input is a table that a workflow takes.
type Input struct {
	// Name of the port; SQL knows the table by it.
	Name string `yaml:"name" json:"name"`
	// Only `table`.
	Type string `yaml:"type" json:"type,omitempty" enum:"table" default:"table"`
	// What the table holds; text for models and people.
	Description string `yaml:"description" json:"description"`
	// Columns that the table must have: name -> string, integer, number, boolean, timestamp, binary, list or any. It may have more.
	Columns map[string]string `yaml:"columns" json:"columns,omitempty" default:"{}"`
}

// Output is a table that a workflow gives.
type Output struct {
	// Name of the port.
	Name string `yaml:"name" json:"name"`
	// What the table holds; text for models and people.
	Description string `yaml:"description" json:"description"`
	// Step whose table it is, or an input.
	From string `yaml:"from" json:"from"`
	// Columns that the table is promised to have, for those who connect workflows.
	Columns map[string]string `yaml:"columns" json:"columns,omitempty" default:"{}"`
}

// Message says what text the caller gets.
type Message struct {
	// Step whose text it is; of a table the first cell, if that is a text. Without it the caller is told that the workflow has run.
	From string `yaml:"from" short:"true"`
}

// Step is one step of a workflow. It has one of tool, sql, template, agent, http and table.
type Step struct {
	// Name of the step; its result is `steps.ID`. Letters, digits and `_`, not beginning with a digit.
	ID string `yaml:"id"`

	// Calls a tool, by the name that models see, or, with `server`, by its name there. Rules, approval and cache hold as for any call.
	Tool string `yaml:"tool"`
	// Server that has the tool.
	Server string `yaml:"server"`
	// Arguments of a tool or a request: name -> CEL. What is not a text is taken as it is; a text is written in quotes within: "'London'". Lists and maps are read through.
	Args map[string]json.RawMessage `yaml:"args" default:"{}"`
	// Tables for a tool that is a workflow, whose parameters are args: its port -> an input, a step, or STEP.PORT of a step that calls a workflow.
	Inputs map[string]string `yaml:"inputs" default:"{}"`

	// One SELECT in SQLite's SQL. Tables are inputs and steps with a table, by name; `:name` is a value of `params`.
	SQL string `yaml:"sql"`
	// Values for the query: name -> CEL.
	Params map[string]json.RawMessage `yaml:"params" default:"{}"`
	// Tables that the query reads, where that cannot be seen from its text.
	Tables []string `yaml:"tables"`

	// A text with CEL between {{ and }}.
	Template string `yaml:"template"`

	// Asks an agent, an entry of `agents`.
	Agent string `yaml:"agent"`
	// What the agent is asked: a text with CEL between {{ and }}.
	Message string `yaml:"message"`

	// Sends a request; its templates see `args`.
	HTTP *catalog.Request `yaml:"http"`

	// Makes a table.
	Table *Source `yaml:"table"`

	// Steps that come first, though nothing of them is used.
	After []string `yaml:"after" default:"[]"`
	// CEL; where it is false, the step is skipped.
	When string `yaml:"when"`
	// CEL that gives a list: the step is done for each of it, as `item`, with the number `index` from 0.
	Foreach *Foreach `yaml:"foreach"`
	// How often a step is tried that failed. A call whose outcome is unknown is never made again.
	Retry *Retry `yaml:"retry"`
	// Time for one attempt.
	Timeout time.Duration `yaml:"timeout" default:"the tool's"`
	// What happens when the step fails. fail: the workflow fails; continue: it goes on, and `steps.ID.ok` is false; {default: VALUE}: it goes on, with this as `steps.ID.value`.
	OnError *OnError `yaml:"on_error" default:"fail"`
}

// Source is where the table of a step comes from: one of rows, csv and arrow.
type Source struct {
	// The rows: a list of maps from column to value, or CEL that gives one.
	Rows json.RawMessage `yaml:"rows"`
	// A CSV file with a header line, in the workflow's folder.
	CSV string `yaml:"csv"`
	// An Arrow file, in the workflow's folder.
	Arrow string `yaml:"arrow"`
	// Types of columns: name -> string, integer, number, boolean or timestamp. Without them those of a CSV file are found out from its values.
	Columns map[string]string `yaml:"columns" default:"{}"`
}

// Foreach repeats a step.
type Foreach struct {
	// CEL that gives a list of at most 1000 values.
	Items string `yaml:"items" short:"true"`
	// Calls under way at a time.
	Concurrency int `yaml:"concurrency" min:"1" max:"64" default:"4"`
}

// Retry says how often a failed step is tried.
type Retry struct {
	// Attempts in all.
	Attempts int `yaml:"attempts" short:"true" min:"1" max:"10" default:"3"`
	// Pause before the second attempt; it doubles with each further one, up to ten minutes.
	Delay time.Duration `yaml:"delay" default:"1s"`
}

// OnError says what happens when a step fails.
type OnError struct {
	// fail or continue.
	Do string `yaml:"do" short:"true" enum:"fail,continue" default:"fail"`
	// Value of the step that failed; the workflow goes on.
	Default json.RawMessage `yaml:"default"`
}

// The values of [OnError.Do].
const (
	OnErrorFail     = "fail"
	OnErrorContinue = "continue"
)

// The kinds of steps, by the keys that make them.
const (
	StepTool     = "tool"
	StepSQL      = "sql"
	StepTemplate = "template"
	StepAgent    = "agent"
	StepHTTP     = "http"
	StepTable    = "table"
)

// The bounds of a file.
const (
	maxSteps    = 500
	maxPorts    = 64
	maxItems    = 1000 // of a foreach
	maxDelay    = 10 * time.Minute
	defaultWait = time.Second
)
