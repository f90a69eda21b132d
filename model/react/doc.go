// Package react is tool use for models that cannot call tools: a text loop of
// thought, action and observation around any [tenon.Model]. It stands between
// the engine's executor and a model's adapter and is itself a [tenon.Model], so
// the core, the policy, the audit and the journal see calls like all others.
//
//	request with tools ─► Prompt: one text with tools, question, steps so far ─► model
//	calls, thoughts, answer ◄─ Parser: Thought, Action, Args, Final Answer    ◄─ text
//
// A reply is one step, and [Parser] has the grammar:
//
//	Thought: I need the balance.
//	Action: get_bank_balance
//	Args: {"account_id": "1"}
//
//	Thought: I have it.
//	Final Answer: The balance is 5.
//
// A thought becomes thinking, an action a tool call, a final answer text. What
// cannot be read ends with [tenon.StopBadCall]: the core asks again, and the next
// prompt has `Error: LLM parse error: …` as the step's observation.
//
// A request without tools passes as it is, except that calls and results of
// before, which the model cannot take, are written as text.
//
// Each request writes its prompt anew. What is costly of it, the list of tools, is
// made once for a snapshot of tools and then shared.
package react
