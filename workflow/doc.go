// Package workflow runs workflow files: tools made of steps. Like package agent, it is a pure core. Package
// agent asks a model for the next step; this package reads the steps from a file.
//
//	workflow.yaml ─► config (file, line, column) ─► File ─► Compile ─► Workflow
//	                                                                     │
//	arguments, tables ─► Spec ─► State: Apply(event), Next() ─► commands ┘
//
// A step is a tool call, a query, a text, an agent, an HTTP request or a table. A step waits for the steps
// that it refers to. Steps that wait for nothing run concurrently. Values are CEL expressions over params,
// inputs, steps and, within foreach, item.
//
// The values of a step's expressions are recorded as an event (planned) before the step runs, like a policy
// verdict. A journal therefore keeps its meaning even if a later version evaluates expressions differently.
// Tool calls, agents and requests are steps of package agent ([agent.CallStep]). Policy, approval, cache,
// questions and audit are thus the same as in an agent's run, and so is the folding of the journal.
//
// Tables are Arrow files in the store. Events carry their description and, for expressions, their first rows.
// The package does not depend on Arrow or SQL: the executor in package host runs those commands.
package workflow
