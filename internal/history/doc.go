// Package history checks the body of a model request against the rules of its provider that concern the
// conversation. They cover the order of roles, one result for each call and one call for each result,
// matching ids, and required signatures.
//
// Only tests use the package: tests of the model adapters, and tests of features that leave an unusual history behind.
// Examples are runs that were cancelled, truncated, stopped at a limit, resumed after a crash or moved to another
// model. A history that a provider refuses cannot be continued.
//
// The rules come from the references of the providers and from recorded refusals. They are implemented a
// second time: the package shares no code with the adapters, so that it finds their mistakes.
package history
