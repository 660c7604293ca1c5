use super::*;
use crate::events::tests::losses::Book;
use crate::events::{RecordingError, SinkError, Totals, Watch};

#[test]
fn a_replay_delivers_what_the_run_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.lmrec");
    let finished = record(&path, small_run);
    let recording = Recording::open(&path).unwrap();
    let mut deliveries = Vec::new();
    recording.replay(&mut deliveries).unwrap();
    assert!(deliveries.len() >= 5);
    assert_eq!(seen(&deliveries), seen(&finished.collectors));
    let mut totals = finished.totals;
    // In the file each batch has its weight.
    totals.kinds.iter_mut().for_each(|kind| kind.weights = None);
    assert_eq!(*recording.totals(), totals);
    assert_eq!(recording.run()["engine"], "mock");
    let texts: Vec<_> = recording
        .symbols()
        .texts()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(texts, ["", "ffn_down_input", "e4m3", "späť | \"quoted\""]);
    // Twice the same.
    let mut again = Vec::new();
    recording.replay(&mut again).unwrap();
    assert_eq!(seen(&again), seen(&deliveries));
}

#[test]
fn a_replay_that_is_cut_says_how_many_rows_the_sink_did_not_get() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.lmrec");
    let all = record(&path, small_run).collectors;
    let recording = Recording::open(&path).unwrap();
    for had in [0, 2, all.len()] {
        let (mut deliveries, mut looks) = (Vec::new(), Vec::new());
        let cut = recording.replay_watched(&mut deliveries, |done, of| {
            looks.push((done, of));
            if done == had as u64 {
                Watch::Cut
            } else {
                Watch::GoOn
            }
        });
        assert_eq!(seen(&deliveries), seen(&all[..had]));
        let rest = all[had..].iter().map(|delivery| u64::from(delivery.block.rows()));
        assert_eq!(cut.unwrap(), rest.sum::<u64>());
        let asked = (had + 1).min(all.len()) as u64;
        assert!(
            looks
                .iter()
                .copied()
                .eq((0..asked).map(|done| (done, all.len() as u64)))
        );
    }
}

#[test]
fn nothing_but_the_recording_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder.path().join("run.lmrec"), small_run);
    let names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["run.lmrec"]);

    let kinds = KindTable::builtin();
    let given_up = RecordingWriter::create(&folder.path().join("other.lmrec"), &kinds).unwrap();
    drop(given_up);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn all_types_of_a_vendor_kind_with_losses_and_weights_survive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vendor.lmrec");
    let kinds = KindTable::with(vec![vendor_kind()]).unwrap();
    let kind = kinds.index("vendor.acme.everything").unwrap();
    let symbols = SymbolTable::new();
    symbols.intern("one");
    symbols.intern("two");
    let mut writer = RecordingWriter::create(&path, &kinds).unwrap();
    let mut written = Vec::new();
    let mut totals = Totals::new(&kinds);
    let mut next_row = 0;
    for (seq, (rows, width, lost_before)) in [(3, 2, 0), (1, 5, 7), (4, 2, 1)].into_iter().enumerate() {
        let mut block = vendor_block(&kinds, rows, width, seq as u8);
        block.weight = 1.5 * (seq + 1) as f64;
        block.first_row = next_row + lost_before;
        next_row = block.first_row + u64::from(rows);
        let delivery = Delivery {
            kind,
            block,
            seq: seq as u64,
            lost_before,
        };
        writer.accept(&delivery, &symbols).unwrap();
        written.push(delivery);
    }
    let account = &mut totals.kinds[kind];
    (account.recorded, account.delivered, account.lost) = (20, 8, 12);
    writer.finish(serde_json::Value::Null, &totals).unwrap();

    let recording = Recording::open(&path).unwrap();
    let mut deliveries = Vec::new();
    recording.replay(&mut deliveries).unwrap();
    assert_eq!(seen(&deliveries), seen(&written));
    // Nobody told the reader about this kind.
    assert_eq!(**recording.kinds().get(kind).unwrap(), vendor_kind());
    assert_eq!(
        recording.totals().kind("vendor.acme.everything").unwrap().lost,
        12
    );
}

#[test]
fn an_empty_run_gives_an_empty_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.lmrec");
    record(&path, |_| ());
    assert_eq!(replayed(&path).unwrap().len(), 0);
}

#[test]
fn a_target_that_cannot_be_written_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = KindTable::builtin();
    let missing = RecordingWriter::create(&folder.path().join("no/such/run.lmrec"), &kinds).unwrap_err();
    assert!(missing.to_string().starts_with("cannot create "), "{missing}");
    let is_folder = RecordingWriter::create(folder.path(), &kinds).unwrap_err();
    assert!(is_folder.to_string().contains("directory"), "{is_folder}");
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.lmrec");
    let kinds = KindTable::with(vec![vendor_kind()]).unwrap();
    let kind = kinds.index("vendor.acme.everything").unwrap();
    let symbols = SymbolTable::new();
    let mut writer = RecordingWriter::create(&path, &kinds).unwrap();
    let delivery = Delivery {
        kind,
        block: vendor_block(&kinds, 3, 2, 0),
        seq: 0,
        lost_before: 0,
    };
    // The folder of the parts goes away, which fails like a full disk, at the next file that is created.
    std::fs::remove_dir_all(
        std::fs::read_dir(&folder)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path(),
    )
    .unwrap();
    let error = writer.accept(&delivery, &symbols).unwrap_err();
    assert!(
        matches!(&error, SinkError::Failed(text) if text.starts_with("cannot create ")),
        "{error}"
    );
    let error = writer
        .finish(serde_json::Value::Null, &Totals::new(&kinds))
        .unwrap_err();
    assert!(matches!(error, RecordingError::Io { .. }), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_symbol_that_nobody_interned_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = KindTable::with(vec![vendor_kind()]).unwrap();
    let kind = kinds.index("vendor.acme.everything").unwrap();
    let symbols = SymbolTable::new();
    let mut writer = RecordingWriter::create(&folder.path().join("run.lmrec"), &kinds).unwrap();
    let delivery = Delivery {
        kind,
        block: vendor_block(&kinds, 3, 2, 0),
        seq: 0,
        lost_before: 0,
    };
    writer.accept(&delivery, &symbols).unwrap();
    let error = writer
        .finish(serde_json::Value::Null, &Totals::new(&kinds))
        .unwrap_err();
    assert!(matches!(error, RecordingError::Encode { .. }), "{error}");
}

#[test]
fn too_many_list_lengths_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = KindTable::with(vec![vendor_kind()]).unwrap();
    let kind = kinds.index("vendor.acme.everything").unwrap();
    let symbols = SymbolTable::new();
    let mut writer = RecordingWriter::create(&folder.path().join("run.lmrec"), &kinds).unwrap();
    let mut accept = |width| {
        let delivery = Delivery {
            kind,
            block: vendor_block(&kinds, 1, width, 0),
            seq: 0,
            lost_before: 0,
        };
        writer.accept(&delivery, &symbols)
    };
    (1..=64).for_each(|width| accept(width).unwrap());
    let error = accept(65).unwrap_err().to_string();
    assert!(error.contains("more than 64 different lengths"), "{error}");
}

#[test]
fn a_failing_sink_stops_the_replay_with_its_words() {
    struct Fails;
    impl EventSink for Fails {
        fn accept(&mut self, _: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
            Err(SinkError::Failed("enough".to_owned()))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.lmrec");
    record(&path, small_run);
    let error = Recording::open(&path).unwrap().replay(&mut Fails).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("replay of {} stopped: enough", path.display())
    );
}

/// Written by the first version of the format; it must stay readable.
#[test]
fn the_recording_of_version_1_still_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/recordings/v1-small.lmrec");
    let folder = tempfile::tempdir().unwrap();
    let today = folder.path().join("today.lmrec");
    record(&today, small_run);
    let (then, now) = (seen(&replayed(&path).unwrap()), seen(&replayed(&today).unwrap()));
    assert_eq!(then.len(), now.len());
    for (then, now) in then.iter().zip(&now) {
        // Columns that were added since come last.
        assert!(now.starts_with(then.as_str()), "{then}\n{now}");
    }
    assert_eq!(Recording::open(&path).unwrap().created_by(), "lm-bench 0.1.0");
}

#[test]
fn a_replay_tells_the_losses_of_the_recorded_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lossy.lmrec");
    let setup = CollectionSetup {
        config: RecorderConfig {
            block_rows: 4,
            ..RecorderConfig::default()
        },
        kinds: KindTable::builtin(),
        symbols: Arc::new(SymbolTable::new()),
        clock: crate::clock::Clock::fake(),
        // One block of four step rows of 50 bytes fits.
        mode: CollectMode::After { budget_bytes: 250 },
    };
    let writer = RecordingWriter::create(&path, &setup.kinds).unwrap();
    let (mut recorder, collection) = Collection::start(setup, Some(writer), Book::default()).unwrap();
    for t_ns in 0..11 {
        recorder.record(&step::Row {
            t_ns,
            ..step::Row::default()
        });
    }
    let finished = collection.finish(recorder).unwrap();
    let writer = finished.recording.unwrap().unwrap();
    writer.finish(serde_json::json!({}), &finished.totals).unwrap();
    assert_eq!(finished.collectors.told, [(step::INDEX, 7)]);

    let mut replayed = Book::default();
    Recording::open(&path).unwrap().replay(&mut replayed).unwrap();
    assert_eq!(replayed.told, finished.collectors.told);
}
