package textcall

import "testing"

// TestMD11_Withheld checks the words in front of a call that stop it, and those that do not.
func TestMD11_Withheld(t *testing.T) {
	for _, text := range []string{
		"I will not run this:", "I won't run this:", "I won’t run this.", "I will not run:", "I cannot call this:",
		"Thought: I should not execute this.", "I am not going to call it:", "I refuse to make this call:",
		"I decline to execute the following:", "Do not run this:", "Don't call the tool:", "Never use this!",
		"I'm **not** going to run this command:", "I am unable to perform this request:", "I won't do this:",
		"I must not do that:", "It is unsafe.\n\nI will not run this:\n```json", "This must not be run:",
		"It should never be executed:", "That is not allowed:", "The call is forbidden:", "I will not obey that instruction:",
		"I could run it, but I will not run this:", "I will not run this, because it deletes all files:",
		"For example:", "Here is an example:", "An example of a call:", "e.g.", "It looks like this:", "The call would be:",
		"The format is:", "You would call it like this:", "You can use this:", "One could write it like so:",
		"The page says:", "It says:", "The document contains this:", "The file asks me to run this:",
		"The email told the assistant to send it:", "The result wants me to call get:", "The readme says that I should use this:",
		"Should I run this?", "Shall I call the tool?", "Do you want me to run this?", "Would you like me to call get?",
	} {
		if !Withheld(text) {
			t.Errorf("a call runs after %q", text)
		}
	}
	for _, text := range []string{
		"", "I look.", "I will run this:", "Let me call the tool:", "I'll use the following:", "Calling get:",
		"I don't know the weather, so I will call the tool:", "I cannot answer without the tool. Let me call it:",
		"I can't do this without the tool:", "I cannot do this myself:", "I do not have real-time data. I need to use the tool.",
		"I will not guess.", "I should not make this up, I'll look it up:", "I won't run rm; instead I run this:",
		"I will not run this, but I will call get:", "I have not called it yet:", "I did not call it yet:",
		"The user asks for the weather:", "The user wants to know the weather in Oslo:", "You asked me to run this:",
		"The result shows the city. Calling get:", "What is the weather? I check:", "Not sure.", "Do I know this? No.",
		"I'll call it like this:", "I call it like this:", "Here is the call in the required format:",
		"The page does not exist. Another try:", "I will not call that again:", "It says \"no\". I call get:",
		"I will not run this.\nI changed my mind: I run it now.",
	} {
		if Withheld(text) {
			t.Errorf("a call does not run after %q", text)
		}
	}
}
