package host

// RulesReadPrincipal reports whether the rules of a host can decide differently about the calls of different
// principals.
func RulesReadPrincipal(h *Host) bool { return h.ruleset().Layers.ReadsPrincipal() }
