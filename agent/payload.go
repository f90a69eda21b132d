package agent

import (
	"github.com/tenonhq/tenon"
)

// Payload decodes the data of an event into a pointer to its type, which the constant of the event's kind names.
// For a kind without data, or one that this core does not know, it returns nil. If the data cannot be read, it
// returns the zero value of the type and an error with code store.
func Payload(e tenon.Event) (any, error) {
	switch e.Kind {
	case EventModel:
		return payload[Answered](e)
	case EventProposed:
		return payload[tenon.ToolCall](e)
	case EventReserved:
		return payload[Reserved](e)
	case EventDecided:
		return payload[Decision](e)
	case EventAdmitted:
		return payload[Admitted](e)
	case EventDecision:
		return payload[Ruling](e)
	case EventResult:
		return payload[Outcome](e)
	case EventFailed, tenon.EventUnknown:
		return payload[Failure](e)
	case tenon.EventInterrupted:
		if len(e.Data) == 0 || tenon.ParseStep(e.Step).Call != "" {
			return nil, nil
		}
		return payload[Partial](e)
	case EventInput:
		return payload[Input](e)
	case EventAnswer:
		return payload[Answer](e)
	case EventMessage:
		return payload[Steer](e)
	case EventChild:
		return payload[ChildWaits](e)
	case EventHandoff:
		return payload[Handoff](e)
	case EventTools:
		return payload[ToolsChanged](e)
	case EventCompacted:
		return payload[Compacted](e)
	case LiveProgress:
		return payload[tenon.Progress](e)
	case LiveChild:
		return payload[tenon.Event](e)
	case tenon.EventStarted:
		return payload[tenon.StartedData](e)
	case tenon.EventQuestion:
		return payload[Question](e)
	case tenon.EventExpired:
		return payload[tenon.ExpiredData](e)
	case tenon.EventCancel:
		return payload[tenon.CancelData](e)
	case tenon.EventDone:
		return payload[tenon.DoneData](e)
	}
	return nil, nil
}

func payload[T any](e tenon.Event) (any, error) {
	v := new(T)
	if err := decode(e, v); err != nil {
		return new(T), err
	}
	return v, nil
}
