# What each target does stands in AGENTS.md. Everything runs with Go alone.

.PHONY: figures

# Measures and writes docs/figures.json and docs/figures.md: make figures [ID=P1] [ROUNDS=7]
figures:
	@go run ./internal/figures $(if $(ID),-id $(ID)) $(if $(ROUNDS),-rounds $(ROUNDS))
