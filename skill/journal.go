package skill

// Commit is one entry of a bank's journal: a candidate became the bank. Nobody changes one after it was made.
type Commit struct {
	Parent     string     `json:"parent"` // hash of the bank before
	Hash       string     `json:"hash"`   // of the bank after
	Edit       Edit       `json:"edit"`
	Outcome    Outcome    `json:"outcome"`
	Provenance Provenance `json:"provenance"`
	Reason     string     `json:"reason"` // why it was committed: the gate's rule, or a person's word
	// Superseded are the skills that the edit contradicts and that it sent to the archive.
	Superseded []string `json:"superseded,omitempty"`
	Bank       Bank     `json:"-"` // after
}

// Provenance says where an edit comes from and what speaks for it.
type Provenance struct {
	Iteration     int      `json:"iteration"`
	Task          string   `json:"task"` // of the episode whose review wrote it
	Family        string   `json:"family"`
	Category      string   `json:"category"`
	Seed          uint64   `json:"seed"`   // of that episode
	Group         int      `json:"group"`  // the episode's place among the iteration's
	Member        int      `json:"member"` // its place in the group
	PolicyVersion int      `json:"policy_version"`
	Verdict       Verdict  `json:"verdict"`  // of the probes that paid the edit and admitted it to the gate
	Evidence      Evidence `json:"evidence"` // of the gate
}

// Verdict is what an edit was paid for; all zero: it was not judged.
type Verdict struct {
	Pairs     int     `json:"pairs"`
	Wins      int     `json:"wins"`
	Losses    int     `json:"losses"`
	MeanDelta float64 `json:"mean_delta"`
	Utility   float64 `json:"utility"`
}

// Evidence is what the gate's probes found about an edit; all zero: it was not tested.
type Evidence struct {
	Pairs     int     `json:"pairs"`
	Wins      int     `json:"wins"`
	Losses    int     `json:"losses"`
	MeanDelta float64 `json:"mean_delta"`
	EValue    float64 `json:"e_value"`
}
