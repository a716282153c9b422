//! The patients. All are invented, and their names say so.

use serde::Serialize;

/// One patient. Fixed: only triage and notes can be added.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Patient {
    /// Name in paths.
    pub(super) id: &'static str,
    /// Medical record number.
    pub(super) mrn: &'static str,
    /// Full name.
    pub(super) name: &'static str,
    /// Date of birth, `YYYY-MM-DD`.
    pub(super) dob: &'static str,
    /// As registered.
    pub(super) sex: &'static str,
    /// Known allergies, or that none are known.
    pub(super) allergies: &'static str,
    /// Why the patient came.
    pub(super) reason: &'static str,
}

/// Every patient, by id. The first two are alike on purpose: a name is not an identity.
#[rustfmt::skip]
pub(super) const PATIENTS: [Patient; 10] = [
    patient("p-001", "MRN-900001", "Ada Sample", "1984-03-12", "Female", "Penicillin", "Chest pain since this morning"),
    patient("p-002", "MRN-900002", "Ada Sampleton", "1948-03-12", "Female", "None known", "Dizziness on standing"),
    patient("p-003", "MRN-900003", "Bruno Placeholder", "1990-11-30", "Male", "None known", "Twisted ankle"),
    patient("p-004", "MRN-900004", "Chen Example", "2001-07-04", "Male", "Latex", "Rash on both arms"),
    patient("p-005", "MRN-900005", "Dora Testcase", "1976-01-22", "Female", "None known", "Migraine, third day"),
    patient("p-006", "MRN-900006", "Emil O'Mock", "1959-09-09", "Male", "Aspirin", "Shortness of breath"),
    patient("p-007", "MRN-900007", "Fatima Fixture", "2015-05-18", "Female", "Peanuts", "Fever and ear ache"),
    patient("p-008", "MRN-900008", "Gustav Dummy", "1967-12-01", "Male", "None known", "Cut on left hand"),
    patient("p-009", "MRN-900009", "Hana Specimen", "1993-08-27", "Female", "Iodine contrast", "Abdominal pain"),
    patient("p-010", "MRN-900010", "Ivo Synthetic", "1939-02-14", "Male", "None known", "Fall at home"),
];

/// The patient with this id.
pub(super) fn find(id: &str) -> Option<&'static Patient> {
    PATIENTS.iter().find(|patient| patient.id == id)
}

/// The patients whose name, record number or date of birth has `text` in it, in any case; all of them for `None`.
pub(super) fn search(text: Option<&str>) -> Vec<&'static Patient> {
    let text = text.unwrap_or_default().to_lowercase();
    let found = |patient: &&Patient| {
        [patient.name, patient.mrn, patient.dob].iter().any(|field| field.to_lowercase().contains(&text))
    };
    PATIENTS.iter().filter(found).collect()
}

const fn patient(
    id: &'static str,
    mrn: &'static str,
    name: &'static str,
    dob: &'static str,
    sex: &'static str,
    allergies: &'static str,
    reason: &'static str,
) -> Patient {
    Patient { id, mrn, name, dob, sex, allergies, reason }
}
