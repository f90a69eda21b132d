package workflow

import (
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon/catalog"
)

// Kind is the value of the key kind. FileName is the name of the workflow file in a folder or a pack.
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
	// Description of the tool, for models and people.
	Description string `yaml:"description"`
	// Parameters of the tool: name -> JSON Schema of the value. Each needs a `description`. A parameter
	// without a `default` is required.
	Parameters map[string]json.RawMessage `yaml:"parameters" default:"{}"`
	// Tables that the tool takes as input.
	Inputs []Input `yaml:"inputs" default:"[]"`
	// The work. The order in the file does not matter: a step begins as soon as everything that it refers to
	// is available.
	Steps []Step `yaml:"steps"`
	// Tables that the tool returns.
	Outputs []Output `yaml:"outputs" default:"[]"`
	// The text that the tool returns.
	Message Message `yaml:"message"`
	// Folder next to the file that belongs to the workflow. Each call gets a copy of it; the variable `data`
	// is the path of the copy, for arguments of tools.
	Data string `yaml:"data"`
	// Time limit of a whole run, including waits for people.
	Timeout time.Duration `yaml:"timeout" default:"none"`
	// Maximum number of concurrent steps, and of concurrent calls of one foreach.
	Parallel int `yaml:"parallel" min:"1" max:"64" default:"8"`
}

// Input is an input table of a workflow.
type Input struct {
	// Name of the port; also the name of the table in SQL.
	Name string `yaml:"name" json:"name"`
	// Always `table`.
	Type string `yaml:"type" json:"type,omitempty" enum:"table" default:"table"`
	// Content of the table; text for models and people.
	Description string `yaml:"description" json:"description"`
	// Required columns: name -> string, integer, number, boolean, timestamp, binary, list or any. Further
	// columns are allowed.
	Columns map[string]string `yaml:"columns" json:"columns,omitempty" default:"{}"`
}

// Output is an output table of a workflow.
type Output struct {
	// Name of the port.
	Name string `yaml:"name" json:"name"`
	// Content of the table; text for models and people.
	Description string `yaml:"description" json:"description"`
	// Step that produces the table, or an input.
	From string `yaml:"from" json:"from"`
	// Columns that the table always has, for connecting workflows.
	Columns map[string]string `yaml:"columns" json:"columns,omitempty" default:"{}"`
}

// Message selects the text that the tool returns.
type Message struct {
	// Step whose text is returned; for a table, its first cell, if that is a string. By default the text only
	// says that the workflow has run.
	From string `yaml:"from" short:"true"`
}

// Step is one step of a workflow. It has exactly one of tool, sql, template, agent, http and table.
type Step struct {
	// Name of the step; its result is `steps.ID`. Letters, digits and `_`, not starting with a digit.
	ID string `yaml:"id"`

	// Calls a tool by the name that models see or, with `server`, by its name on that server. Rules, approval
	// and cache apply as to any call.
	Tool string `yaml:"tool"`
	// Server of the tool.
	Server string `yaml:"server"`
	// Arguments of a tool or a request: name -> CEL. A string is a CEL expression; write a literal string
	// with inner quotes: "'London'". Other values are literals; lists and maps may contain expressions.
	Args map[string]json.RawMessage `yaml:"args" default:"{}"`
	// Input tables of a tool that is a workflow (its parameters are `args`): port -> an input, a step, or
	// STEP.PORT of a step that calls a workflow.
	Inputs map[string]string `yaml:"inputs" default:"{}"`

	// One SELECT statement in SQLite's SQL. Its tables are inputs and steps that produce tables, by name.
	// `:name` is a value of `params`.
	SQL string `yaml:"sql"`
	// Parameters of the query: name -> CEL.
	Params map[string]json.RawMessage `yaml:"params" default:"{}"`
	// Tables that the query reads, if they cannot be determined from its text.
	Tables []string `yaml:"tables"`

	// A text with CEL between {{ and }}.
	Template string `yaml:"template"`

	// Asks an agent: the name of an entry of `agents`.
	Agent string `yaml:"agent"`
	// Message to the agent: a text with CEL between {{ and }}.
	Message string `yaml:"message"`

	// Sends an HTTP request; its templates see only `args`.
	HTTP *catalog.Request `yaml:"http"`

	// Creates a table.
	Table *Source `yaml:"table"`

	// Steps that must finish first, even though their results are not used.
	After []string `yaml:"after" default:"[]"`
	// CEL condition; if it is false, the step is skipped.
	When string `yaml:"when"`
	// CEL that returns a list. The step runs once for each element, as `item`, with the position `index` from
	// 0.
	Foreach *Foreach `yaml:"foreach"`
	// Retries after a failure. A call with an unknown outcome is not retried.
	Retry *Retry `yaml:"retry"`
	// Time limit of one attempt.
	Timeout time.Duration `yaml:"timeout" default:"the tool's"`
	// Behaviour after a failure. fail: the workflow fails; continue: it continues, and `steps.ID.ok` is
	// false; {default: VALUE}: it continues with this value as `steps.ID.value`.
	OnError *OnError `yaml:"on_error" default:"fail"`
}

// Source is the origin of a table step: one of rows, csv and arrow.
type Source struct {
	// The rows: a list of maps from column to value, or CEL that returns one.
	Rows json.RawMessage `yaml:"rows"`
	// A CSV file with a header line, in the workflow's folder.
	CSV string `yaml:"csv"`
	// An Arrow file, in the workflow's folder.
	Arrow string `yaml:"arrow"`
	// Types of columns: name -> string, integer, number, boolean or timestamp. By default the types of a CSV
	// file are inferred from its values.
	Columns map[string]string `yaml:"columns" default:"{}"`
}

// Foreach repeats a step.
type Foreach struct {
	// CEL that returns a list of at most 1000 values.
	Items string `yaml:"items" short:"true"`
	// Maximum number of concurrent calls.
	Concurrency int `yaml:"concurrency" min:"1" max:"64" default:"4"`
}

// Retry configures the attempts of a step.
type Retry struct {
	// Total number of attempts.
	Attempts int `yaml:"attempts" short:"true" min:"1" max:"10" default:"3"`
	// Delay before the second attempt. It doubles with each further attempt, up to ten minutes.
	Delay time.Duration `yaml:"delay" default:"1s"`
}

// OnError configures the behaviour after a failure of the step.
type OnError struct {
	// fail or continue.
	Do string `yaml:"do" short:"true" enum:"fail,continue" default:"fail"`
	// Value of the failed step; the workflow continues.
	Default json.RawMessage `yaml:"default"`
}

// The values of [OnError.Do].
const (
	OnErrorFail     = "fail"
	OnErrorContinue = "continue"
)

// The kinds of steps, named after their keys.
const (
	StepTool     = "tool"
	StepSQL      = "sql"
	StepTemplate = "template"
	StepAgent    = "agent"
	StepHTTP     = "http"
	StepTable    = "table"
)

// Limits of a workflow file.
const (
	maxSteps    = 500
	maxPorts    = 64
	maxItems    = 1000 // elements of a foreach
	maxDelay    = 10 * time.Minute
	defaultWait = time.Second
)
