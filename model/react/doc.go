// Package react adds tool use to models that cannot call tools. It runs a text loop of thought,
// action and observation around any [tenon.Model]. The wrapper is a [tenon.Model] itself and sits
// between the engine's executor and the adapter. So the core, the policies, the audit and the
// journal treat its calls like all others.
//
//	request with tools ─► Prompt: one text with tools, question, steps so far ─► model
//	calls, thoughts, answer ◄─ Parser: Thought, Action, Args, Final Answer    ◄─ text
//
// A reply is one step. [Parser] documents the grammar:
//
//	Thought: I need the balance.
//	Action: get_bank_balance
//	Args: {"account_id": "1"}
//
//	Thought: I have it.
//	Final Answer: The balance is 5.
//
// A thought becomes thinking, an action becomes a tool call, and a final answer becomes text. A
// reply that cannot be parsed ends with [tenon.StopBadCall]. The core then asks again, and the
// observation of that step in the next prompt is `Error: LLM parse error: …`.
//
// A request without tools is passed on unchanged, except that calls and results in its messages,
// which the model does not support, become text.
//
// Each request renders its prompt again. Only the list of tools is expensive; it is rendered once
// per snapshot and shared.
package react
