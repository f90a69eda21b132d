// Package view folds the journal of a run into what surfaces show of it.
//
// A journal is a list of events whose data is JSON. [Decode] turns the data of any event into a typed value; no
// other package needs to know the JSON. [Run] applies the events one after another, stored and live ones, and
// answers from them:
//
//	Calls    the audit record of each tool call, with the questions of its server
//	Steps    what the run did when: the lines of a waterfall
//	Report   the answer, the usage, the costs and how the run ended
//
// The terminal, the HTTP API, statistics, evaluations and exported audits read runs through this package. The page
// of the workbench folds the same events in TypeScript (web/app/src/fold.ts).
package view
