package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skillmaster/chat"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/skill"
)

// teach lets the teacher propose skills for families that fail too often (SkillRL, arXiv 2602.08234, "dynamic evolution",
// here from failures of the train panel). What failed is what the world says, whatever its return.
func (t *Trainer) teach(ctx context.Context, s *state, r *Report, seed episode.Seed) error {
	c := t.Config.Teacher
	if c.Every == 0 || (s.Round+1)%c.Every != 0 {
		return nil
	}
	won, failed := map[string]float64{}, map[string][]episode.Trajectory{}
	played := map[string]float64{}
	for _, g := range r.Groups {
		for _, tr := range g.Trajectories {
			f := tr.Task.Family
			played[f]++
			won[f] += indicator(tr.Success)
			if !tr.Success {
				failed[f] = append(failed[f], tr)
			}
		}
	}
	var added int
	families := slices.Sorted(maps.Keys(played))
	for _, f := range families {
		if won[f]/played[f] >= c.Below {
			continue
		}
		if len(failed[f]) == 0 {
			return fmt.Errorf("family %s has a success of %v and no failed episode", f, won[f]/played[f])
		}
		n, err := t.lesson(ctx, s, r, failed[f], seed.Derive("lesson "+f))
		if err != nil {
			return fmt.Errorf("teacher on %s: %w", f, err)
		}
		added += n
	}
	r.Metrics["teacher/added"] = float64(added)
	return nil
}

// lesson asks for skills one by one, until the teacher keeps the bank as it is or has proposed enough, and says how many
// came to something.
func (t *Trainer) lesson(ctx context.Context, s *state, r *Report, failed []episode.Trajectory, seed episode.Seed) (added int, err error) {
	r0 := seed.Rand()
	r0.Shuffle(len(failed), func(i, j int) { failed[i], failed[j] = failed[j], failed[i] })
	failed = failed[:min(len(failed), t.Config.Teacher.Failures)]
	task := failed[0].Task
	for i := range uint64(t.Config.Teacher.Most) {
		c, err := t.Teacher.Complete(ctx, policy.Request{
			Messages: []chat.Message{{Role: chat.System, Text: teacherRules(t.Suite.Guide().Role, task.Category)}, {Role: chat.User, Text: t.failures(s.Bank, failed)}},
			Sampling: policy.Sampling{Temperature: 1, MaxTokens: t.Config.Teacher.Tokens, Seed: uint64(seed.Derive("skill", i))},
		})
		if err != nil {
			return added, err
		}
		call := skill.ParseCall(c.Text, skill.Lenient)
		if !call.Parsed() || call.Edit.Op != skill.Propose {
			return added, nil
		}
		after, outcome := s.Bank.Apply(call.Edit, skill.Permission{Category: task.Category})
		if outcome != skill.Added {
			return added, nil
		}
		added++
		r.Commits = append(r.Commits, skill.Commit{
			Parent: s.Bank.Hash(), Hash: after.Hash(), Edit: call.Edit, Outcome: outcome, Reason: "teacher", Bank: after,
			Provenance: skill.Provenance{
				Iteration: s.Round, Task: task.ID, Family: task.Family, Category: task.Category, Seed: uint64(failed[0].Seed), PolicyVersion: failed[0].PolicyVersion,
			},
		})
		s.Bank = after
	}
	return added, nil
}

func teacherRules(role, category string) string {
	return "You teach an agent. " + role + ` Its skills are advice that stands in its prompt. You are shown its skills and episodes in which it failed.
Answer with exactly one tool call: a skill that would have helped and is not there yet,
<tool_call>{"name":"propose_skill","arguments":{"category":"` + category + `","title":"…","principle":"…","when_to_apply":"…","evidence":"…"}}</tool_call>
or, if there is nothing to add,
<tool_call>{"name":"keep_skill","arguments":{"reason":"…"}}</tool_call>
The category is ` + category + `, or general. Write rules that hold in other rooms: no numbers, prices or ids of things. A title has at most 80
characters, a principle 400, a condition 200.`
}

// shownSteps is how many of a failed episode's last steps a teacher sees.
const shownSteps = 20

// failures puts a bank and failed episodes before the teacher.
func (t *Trainer) failures(b skill.Bank, failed []episode.Trajectory) string {
	var text strings.Builder
	skills := skill.Render(skill.Retrieve(b, skill.Query{How: skill.Shelf, Category: failed[0].Task.Category}), nil)
	if skills == "" {
		skills = "none"
	}
	fmt.Fprintf(&text, "Skills:\n%s\n", skills)
	for i, tr := range failed {
		fmt.Fprintf(&text, "\nFailed episode %d (%s after %d steps). Task: %s\n", i+1, tr.Stop, len(tr.Steps), tr.Task.Goal)
		from := max(0, len(tr.Steps)-shownSteps)
		if from > 0 {
			fmt.Fprintf(&text, "[%d steps left out]\n", from)
		}
		for _, x := range tr.Steps[from:] {
			fmt.Fprintf(&text, "> %.200s\n%.300s\n", string(x.Action), x.Observation)
		}
	}
	return text.String()
}
