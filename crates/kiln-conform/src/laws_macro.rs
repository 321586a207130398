//! The macro that declares the tests of a driver.

/// Makes one test for each chapter of the laws. The argument is an expression for the [`Subject`](crate::Subject); it is
/// evaluated once for each test.
///
/// ```
/// # mod joining {
/// use kiln_conform::Subject;
///
/// fn subject() -> Subject {
///     Subject::absent("my device", "this is only an example", false)
/// }
///
/// kiln_conform::laws!(subject());
/// # }
/// ```
#[macro_export]
macro_rules! laws {
    ($subject:expr) => {
        $crate::laws! { @tests $subject;
            device Device, pages Pages, memory Memory, host Host, streams Streams, code Code, libraries Libraries, work Work,
            order Order, graphs Graphs, peers Peers, collectives Collectives, handles Handles, threads Threads, loss Loss,
        }
    };
    (@tests $subject:expr; $($test:ident $chapter:ident,)*) => {$(
        #[test]
        fn $test() {
            let chapter = $crate::Chapter::$chapter;
            let summary = $crate::run_test(&$subject, chapter, module_path!(), stringify!($test));
            println!("{summary}");
            assert!(summary.holds(), "{summary}");
        }
    )*};
}
