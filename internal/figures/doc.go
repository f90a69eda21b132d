// Command figures measures the figures in docs/figures.md. Run it from the repository:
//
//	go run ./internal/figures [-id P1] [-rounds 7]     (or: make figures ID=P1)
//
// It rewrites docs/figures.json and docs/figures.md. Rows of measured figures are replaced; all others stay.
//
// Absolute times of a shared machine are not reproducible, so a figure is a ratio of ours to a floor. Both
// are measured in turns within one round, and the value is the median over at least five rounds. Package
// floor contains the floors, package bench the load, and package durable the figures of the engine. The
// separate module internal/rivals contains third-party programs. They are measured in the same rounds if they
// can be built. All child processes are this program itself, started with the hidden first argument "child".
//
// Each file measures one goal: p1.go, p2.go and so on. Only goals.go contains the limits. If a figure cannot
// be measured, the program prints the reason to stderr and keeps the old row, if any.
package main
