package core

// Outcome is how an attempt ended, as far as recovery cares.
type Outcome uint8

// Outcomes of attempts.
const (
	// Answered: the replica answered, with success or with an error that is the
	// application's own and that a repetition would give again.
	Answered Outcome = iota
	// Failed: the replica answered with an error of its own, or not in time. A
	// repeatable call may be sent again.
	Failed
	// Refused: the replica refused the call before it ran. Any call may be sent again.
	Refused
	// Lost: the connection ended under the attempt.
	Lost
	// Unsent: this side could not send for now, the replica knows nothing of it.
	Unsent
	// Invalid: the request cannot be sent at all.
	Invalid
	// Dropped: this side gave the attempt up.
	Dropped
)

// Verdict is why a call ended.
type Verdict uint8

// Verdicts on calls.
const (
	// Decided: the attempt named by Do.Won has the answer, or the error to give.
	Decided Verdict = iota
	// NotRepeatable: the attempt failed and the call must not be sent again.
	NotRepeatable
	// Exhausted: MaxAttempts were made.
	Exhausted
	// OverBudget: the budget of retries was empty for as long as the call may wait.
	OverBudget
	// NoReplica: no replica could be reached for WaitReady.
	NoReplica
	// Expired: the deadline passed between two attempts.
	Expired
)

var verdicts = [...]string{
	"decided", "the call may not be repeated", "all attempts are used up", "the retry budget is empty", "no replica can be reached",
	"the deadline passed",
}

// String says it in words.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return "unknown verdict"
}
