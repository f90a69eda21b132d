// Package workflow runs workflow files: tools made of steps. It is the other pure
// core beside package agent; where that one asks a model what to do next, this one
// reads it from a file.
//
//	workflow.yaml ─► config (file, line, column) ─► File ─► Compile ─► Workflow
//	                                                                     │
//	arguments, tables ─► Spec ─► State: Apply(event), Next() ─► commands ┘
//
// A step is a tool call, a query, a text, an agent, an HTTP request or a table. What a
// step refers to is what it waits for; steps that wait for nothing run side by side.
// Values are CEL over params, inputs, steps and, within foreach, item.
//
// What an expression comes to is an event (planned) before the step is carried out,
// as a policy's verdict is: a journal stays what it was, however a later version
// evaluates. Tool calls, agents and requests are steps of package agent
// ([agent.CallStep]), so that policy, approval, cache, questions and audit are the same
// as in an agent's run, and so is what is folded from the journal.
//
// Tables are Arrow files in the store; events carry what is told of them, and the
// first rows for expressions. The package knows nothing of Arrow and SQL: those
// commands are carried out by the executor in package host.
package workflow
