"""The failures that pebench is built to survive, and the tests that inject each.

`make reliability` runs them all and writes results/reliability.md. A test is named by its file and function; every case
of it counts as one injection. A test that injects several times says so: ``record_property("injections", number)``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """One kind of failure.

    Args:
        injected: How the failure is brought about.
        expected: How it is survived.
        tests: Tests that inject it, as ``file::function`` below tests/.
    """

    injected: str
    expected: str
    tests: tuple[str, ...]


KILLS = "reliability/test_kills.py::"
EXECUTORS = "engine/test_executors.py::"
RESUME = "training/test_resume.py::"
LEASES = "runs/test_leases.py::"
RECORDS = "runs/test_records.py::"
DAMAGE = "runs/test_damage.py::"
DATA = "data/test_damage.py::"
DISK = "engine/test_full_disk.py::"
GUESTS = "engine/test_guests.py::"
END = "training/test_end_of_run.py::"
ODD = "data/test_odd_data.py::"

FAILURES = {
    "F1": Failure(
        "a run's process is killed at random moments",
        "the other runs go on; it is made again, bit for bit",
        (f"{KILLS}test_a_kill_of_a_run_loses_nothing", f"{EXECUTORS}test_a_run_that_is_killed_leaves_the_signal"),
    ),
    "F2": Failure(
        "the command, its server, or everything is killed at random moments",
        "no process is left; no finished run is made again; the rest is, bit for bit",
        (
            f"{KILLS}test_a_kill_of_the_command_loses_nothing",
            f"{KILLS}test_a_kill_of_the_server_loses_nothing",
            f"{KILLS}test_a_kill_of_everything_at_once_loses_nothing",
            f"{EXECUTORS}test_nothing_survives_a_parent_that_is_killed",
        ),
    ),
    "F3": Failure(
        "death at a single system call: write through, rename, link, remove",
        "a record is there completely or not at all; leftovers are cleared",
        (f"{KILLS}test_a_death_at_a_system_call_loses_nothing",),
    ),
    "F4": Failure(
        "several commands make the same runs at once",
        "each run is made once",
        (f"{EXECUTORS}test_several_that_do_the_same_plan_share_it", f"{LEASES}test_of_many_processes_one_gets_the_run"),
    ),
    "F5": Failure(
        "claims of dead processes, of other machines, of reused process numbers",
        "a dead one's run is taken, a living one's is left",
        (
            f"{LEASES}test_the_run_of_a_dead_process_can_be_taken_over",
            f"{LEASES}test_another_process_with_the_same_number_is_not_the_holder",
            f"{LEASES}test_another_machines_lease_counts_while_it_is_fresh",
            f"{LEASES}test_a_process_that_cannot_be_seen_from_here_is_not_taken_for_dead",
            f"{LEASES}test_a_lease_that_cannot_be_read_counts_while_it_is_fresh",
        ),
    ),
    "F6": Failure(
        "SIGINT, SIGTERM, SIGHUP, and two in a row",
        "the command ends soon, and goes on where it was",
        (
            f"{KILLS}test_a_signal_ends_the_command_which_then_goes_on",
            f"{EXECUTORS}test_a_run_that_is_asked_to_end_at_any_moment_goes_on_later",
            "cli/test_interrupts.py::test_an_interrupted_command_goes_on_where_it_was_stopped",
            "cli/test_interrupts.py::test_an_interrupt_while_starting_causes_no_traceback",
        ),
    ),
    "F7": Failure(
        "a loss that is no number, or larger than any",
        "the run ends as diverged, tables say so, the others go on",
        (
            f"{EXECUTORS}test_a_run_that_diverges_leaves_its_step",
            "training/test_optimisation.py::test_a_validation_that_is_no_number_is_a_divergence",
            "training/test_optimisation.py::test_a_model_that_diverged_before_the_first_look_leaves_no_record",
            "training/test_optimisation.py::test_a_huge_loss_has_a_perplexity_that_json_can_hold",
        ),
    ),
    "F8": Failure(
        "memory runs out, or would",
        "a record says so and the others go on; a model that no memory holds is refused",
        (f"{EXECUTORS}test_a_failure_has_a_kind", "engine/test_checks.py::test_a_dry_run_refuses_what_a_run_refuses"),
    ),
    "F9": Failure(
        "a full disk, in bytes or in files",
        "what is written stays whole; a message names the folder",
        (
            f"{EXECUTORS}test_a_disk_that_is_full_ends_no_other_run",
            f"{DISK}test_a_command_names_the_run_that_has_no_room",
            f"{DISK}test_a_plan_that_has_no_room_is_told_before_anything_runs",
            f"{DISK}test_a_log_that_has_no_room_is_done_without",
            f"{DISK}test_an_error_of_writing_names_the_file_and_leaves_no_half",
            f"{DATA}test_a_cache_that_cannot_be_written_is_named",
            f"{RESUME}test_a_checkpoint_that_cannot_be_written_leaves_the_one_before",
            f"{RECORDS}test_a_write_that_fails_leaves_nothing",
            f"{RECORDS}test_a_write_that_fails_keeps_the_record_before_it",
        ),
    ),
    "F10": Failure(
        "records, checkpoints, claims and plans that are cut short, zeroed or changed in one bit",
        "they are noticed and named, and the run is made again",
        (
            f"{RESUME}test_a_damaged_checkpoint_is_as_good_as_none",
            f"{RECORDS}test_a_damaged_record_counts_as_absent",
            f"{RECORDS}test_a_damaged_file_is_named",
            "runs/test_plan.py::test_a_damaged_plan_is_ignored",
            f"{DAMAGE}test_a_flipped_bit_is_never_another_record",
            f"{DAMAGE}test_what_is_wrong_with_a_record_is_said",
            f"{DAMAGE}test_a_record_of_another_run_is_not_taken_for_this_one",
            f"{DAMAGE}test_a_record_in_another_runs_folder_is_named_and_left_out",
            f"{DAMAGE}test_what_run_makes_again_is_to_do_for_status_and_a_dry_run",
            f"{DAMAGE}test_a_record_changed_by_hand_is_refused_and_one_changed_in_python_is_not",
            f"{DAMAGE}test_a_field_of_another_kind_is_refused_or_does_no_harm",
            f"{DAMAGE}test_a_damaged_plan_and_one_that_leads_elsewhere_are_ignored",
            "training/test_weights.py::test_a_flipped_bit_in_kept_weights_is_noticed",
        ),
    ),
    "F11": Failure(
        "a pickle that runs code, as checkpoint, as kept weights, as prepared data; a record that names a module",
        "nothing of it runs: the file counts as damaged; a record imports no code",
        (
            "reliability/test_strangers.py::test_a_pickle_that_runs_code_runs_none",
            f"{DAMAGE}test_a_record_imports_no_code_and_its_user_may",
            f"{DAMAGE}test_a_record_of_an_encoding_within_others_imports_no_code",
        ),
    ),
    "F12": Failure(
        "names that lead elsewhere, or that a page, a table or a terminal would take for commands",
        "nothing is written outside of the folder; pages show text",
        (
            f"{DAMAGE}test_names_of_records_lead_nowhere",
            f"{DAMAGE}test_markdown_shows_options_and_reasons_as_they_are",
            f"{DAMAGE}test_a_cell_of_csv_that_begins_like_a_formula_is_text_and_numbers_stay_numbers",
            f"{DAMAGE}test_a_text_for_others_has_no_places",
            f"{DATA}test_folders_may_have_any_name",
        ),
    ),
    "F13": Failure(
        "a run is interrupted at any step",
        "it ends as the undisturbed one, to the last bit",
        (
            f"{RESUME}test_an_interrupted_run_ends_as_the_undisturbed_one",
            f"{RESUME}test_a_stop_while_testing_costs_no_training",
            "training/test_ddp.py::test_an_interrupted_run_on_two_processes_resumes",
        ),
    ),
    "F14": Failure(
        "the same run in another order, beside others, with another hash seed",
        "the same key and the same metrics",
        (
            f"{EXECUTORS}test_metrics_do_not_depend_on_jobs_order_or_process",
            f"{EXECUTORS}test_metrics_do_not_depend_on_the_hash_seed",
            "tasks/test_configurations.py::test_the_key_is_the_same_in_every_process",
        ),
    ),
    "F15": Failure(
        "a seed of 0, of -1, of 2^32, or that is no whole number",
        "0 is a seed as any other, the others are refused",
        (
            "tasks/test_configure.py::test_what_does_not_exist_is_refused_with_what_does",
            "cli/test_mistakes.py::test_a_mistake_is_told_in_a_line",
            "cli/test_run.py::test_seeds_are_counted_or_named",
        ),
    ),
    "F16": Failure(
        "a run that hangs, or leaves children and threads behind",
        "it is ended at its time limit, with all that it started",
        (
            f"{EXECUTORS}test_a_run_beyond_its_time_limit_is_ended",
            f"{GUESTS}test_a_guest_that_leaves_or_ends_processes_stops_no_other_run",
            f"{GUESTS}test_a_program_ends_though_a_thread_and_a_process_are_left",
        ),
    ),
    "F17": Failure(
        "a run that ends its process",
        "it counts as failed; the others go on",
        (
            f"{EXECUTORS}test_an_exit_in_the_middle_is_a_failure",
            f"{GUESTS}test_a_guest_that_ends_its_process_leaves_a_failure",
            f"{GUESTS}test_a_guest_that_ends_its_process_ends_no_other_run_in_it",
            f"{GUESTS}test_a_guest_that_ends_its_process_when_it_is_built_is_refused",
        ),
    ),
    "F18": Failure(
        "no network, one that hangs, one that is forbidden",
        "a message at once, with what to do; nothing is asked that is forbidden",
        (
            "cli/test_mistakes.py::test_offline_says_at_once_what_to_do",
            "data/test_sources.py::test_without_network_both_ways_out_are_named",
            "data/test_sources.py::test_a_forbidden_network_is_not_asked",
            "data/test_sources.py::test_a_network_that_hangs_is_given_up_in_time",
        ),
    ),
    "F19": Failure(
        "one bit of data is flipped: prepared, local, downloaded",
        "it is noticed before training; what was prepared is prepared anew, what was given is refused by name",
        (
            f"{DATA}test_a_flipped_bit_of_prepared_tensors_is_noticed_wherever_it_is",
            f"{DATA}test_damaged_tensors_are_named_and_prepared_anew",
            f"{DATA}test_tensors_in_the_place_of_others_are_not_taken_for_them",
            f"{DATA}test_a_copy_that_is_not_what_was_published_is_refused_by_name",
            f"{DATA}test_a_flipped_bit_in_a_local_text_is_noticed",
            f"{DATA}test_a_damaged_file_of_images_is_named",
            f"{DATA}test_a_flipped_byte_of_a_table_is_noticed",
        ),
    ),
    "F20": Failure(
        "runs that are missing from a report",
        "the table says which; --strict exits with 1",
        (
            "results/test_absences.py::test_what_the_suite_planned_and_is_not_there_is_told",
            "results/test_absences.py::test_strict_names_every_absent_run",
        ),
    ),
    "F21": Failure(
        "Ray loses a worker or a node",
        "the run is made elsewhere",
        (
            "engine/cluster/test_ray.py::test_a_run_whose_node_is_lost_is_done_on_another",
            "engine/cluster/test_ray.py::test_a_run_whose_worker_is_killed_is_started_again_but_not_for_ever",
        ),
    ),
    "F22": Failure(
        "SLURM kills, signals or cancels a job",
        "the run is submitted again, and goes on",
        (
            "engine/cluster/test_slurm.py::test_a_run_whose_job_is_killed_is_submitted_again_but_not_for_ever",
            "engine/cluster/test_slurm.py::test_a_job_that_must_end_saves_its_run_which_then_goes_on",
        ),
    ),
    "F23": Failure(
        "two runs at a time on two cores",
        "the same metrics as one after the other; the gain is measured in studies/engine.md",
        (f"{EXECUTORS}test_every_executor_leaves_the_same_records",),
    ),
    "F24": Failure(
        "the clock is set back while a run goes on, and while it is looked at",
        "no time is negative; a run's claim and its metrics do not depend on the clock",
        ("reliability/test_strangers.py::test_a_clock_that_is_set_back_changes_nothing_but_the_date",),
    ),
    "F25": Failure(
        "TensorBoard's folder after an interruption",
        "no point twice, one row of hyperparameters",
        (
            f"{RESUME}test_what_was_logged_after_the_checkpoint_is_not_shown_twice",
            "training/test_run_logs.py::test_tensorboard_has_one_row_of_hyperparameters",
        ),
    ),
    "F26": Failure(
        "records of the schema before, of a newer one, and of an older protocol",
        "the older ones are read, and stay as they are; a newer one is named",
        (
            f"{DAMAGE}test_records_without_a_checksum_stay_as_they_are_to_the_byte",
            f"{DAMAGE}test_what_is_wrong_with_a_record_is_said",
        ),
    ),
    "F27": Failure(
        "a plan of very many runs, and commands that train nothing",
        "torch is not imported: they answer at once",
        (
            "engine/test_checks.py::test_a_plan_of_a_thousand_runs_is_made_without_torch",
            "cli/test_verbs.py::test_what_needs_no_model_does_not_import_torch",
        ),
    ),
    "F28": Failure(
        "a file system that cannot link, or whose writes fail",
        "no run is lost",
        (f"{LEASES}test_a_file_system_without_links_will_do", f"{RECORDS}test_a_write_that_fails_leaves_nothing"),
    ),
    "guests": Failure(
        "a plug-in changes torch's settings, functions and hooks",
        "all is put back before another run, which is the same, bit for bit",
        (
            f"{GUESTS}test_the_run_after_a_guests_is_the_same_in_the_same_process",
            f"{GUESTS}test_building_the_encodings_of_others_leaves_this_process_as_it_was",
            f"{GUESTS}test_what_is_changed_is_put_back_and_named",
        ),
    ),
    "the end of a run": Failure(
        "a run is cut off at its end; what is measured then is measured on other weights, splits or precisions",
        "the record is on disk before anything goes, complete, of the chosen weights",
        (
            f"{END}test_the_record_is_on_disk_before_anything_goes",
            "engine/test_run_suite.py::test_an_earlier_failure_stays_until_its_run_has_another_record",
            f"{END}test_the_record_is_written_once_and_complete",
            f"{END}test_everything_after_training_is_measured_with_the_weights_that_validation_chose",
            f"{END}test_other_sizes_are_of_the_test_split_and_shares_of_validation",
            f"{END}test_other_sizes_are_measured_in_the_precision_of_the_run",
        ),
    ),
    "rubbish": Failure(
        "a process dies and leaves claims, halves of files, checkpoints",
        "they are cleared at the next start; what a living process is at stays",
        (
            "runs/test_rubbish.py::test_a_finished_run_keeps_no_checkpoints_leases_claims_and_halves_of_files",
            "runs/test_rubbish.py::test_a_run_that_is_to_be_made_keeps_what_it_goes_on_from",
            "runs/test_rubbish.py::test_what_a_living_process_is_at_stays",
            "runs/test_rubbish.py::test_parts_of_plans_are_cleared_when_a_plan_is_written",
        ),
    ),
    "odd data": Failure(
        "texts and labels that are empty, missing or of another kind; other text encodings",
        "one message names file, column and row, before training",
        (
            f"{ODD}test_an_odd_text_is_named_with_its_row",
            f"{ODD}test_an_odd_label_is_named_with_its_row",
            f"{ODD}test_labels_of_another_kind_are_refused",
            f"{ODD}test_texts_of_another_kind_are_refused",
            f"{ODD}test_a_table_without_a_column_is_named",
            f"{ODD}test_a_table_without_rows_is_named",
            f"{ODD}test_an_odd_text_is_refused",
            f"{ODD}test_tensors_that_no_model_can_take_are_refused",
            f"{DATA}test_a_user_without_a_home_is_told_what_to_set",
        ),
    ),
    "long lives": Failure(
        "10,000 steps in one process, 500 runs under one command, in it and beside it",
        "memory, open files, threads and processes stay as many",
        ("reliability/test_long_lives.py::test_what_lives_long_takes_no_more",),
    ),
    "bad input": Failure(
        "arguments, suite files, plug-ins and data that are empty, huge, cut, of another kind, or end the program",
        "one message, the exit code that is documented, nothing half-written",
        (
            "reliability/test_bad_inputs.py::test_bad_input_is_told_in_one_message",
            "reliability/test_bad_inputs.py::test_a_bad_suite_file_is_told_in_one_message",
            "reliability/test_bad_inputs.py::test_a_bad_plug_in_is_told_in_one_message",
            "reliability/test_bad_data.py::test_damaged_prepared_data_are_the_same_data_again",
            "reliability/test_bad_data.py::test_a_damaged_table_is_named_or_as_it_was",
        ),
    ),
}
