//! The folders of saved scripts and skills: files that are no tools, and folders that are no skills.

use gateway::{SavedScripts, Settings};
use setup::doctor::Check;

/// Reads the folders, and runs nothing of it.
pub(super) fn check(settings: &Settings) -> Vec<Check> {
    let saved = SavedScripts::read(settings.scripts.as_deref());
    let mistakes = saved.mistakes.iter().map(|it| {
        let next = format!("correct {}; the change applies at once", it.file);
        Check::problem(&it.file, &it.why).then(next)
    });
    let mut checks: Vec<Check> = mistakes.collect();
    if checks.is_empty() && saved.has_folder {
        let found = format!("{} saved scripts are tools", saved.count());
        checks.push(Check::fine("scripts", found));
        let skills = saved.skills.count();
        if skills > 0 {
            checks.push(Check::fine("skills", format!("{skills} skills are served")));
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gateway::Settings;
    use setup::doctor::CheckVerdict;

    use super::check;

    #[test]
    fn a_file_that_is_no_tool_is_a_problem_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::in_folder(folder.path().join("state"));
        let scripts = folder.path().join("scripts");
        settings.scripts = Some(scripts.clone());
        assert!(check(&settings).is_empty());
        fs::create_dir(&scripts).unwrap();
        fs::write(scripts.join("one.ts"), "1").unwrap();
        assert_eq!(check(&settings)[0].found, "1 saved scripts are tools");
        fs::write(scripts.join("two.ts"), "\nfunction main(a: string) {}").unwrap();
        let checks = check(&settings);
        assert_eq!(checks[0].verdict, CheckVerdict::Problem);
        assert!(
            checks[0]
                .found
                .starts_with("line 2, column 18: `main` must take an object"),
            "{}",
            checks[0].found
        );
    }
}
