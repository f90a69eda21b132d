// Package schedule computes the times at which schedules of tenon.yaml start runs.
//
//	cron, timezone ─► Times ─► ticks ─► RunID(schedule, tick)
//
// It is pure: package host starts the runs. A tick is a time in UTC. The id of a tick's run is made from the name of
// the schedule and the tick, and the store refuses a second run with the same id. Any number of processes may therefore
// consider the same tick, and it starts once.
//
// Expressions have the five fields of cron(5). Fields of seconds and intervals since the start of a process (@every)
// are refused, because then processes would not agree on the ticks.
package schedule
